#include <treadle/testing/component/component_contract.h>

namespace {

using namespace treadle::testing;

INSTANTIATE_TEST_SUITE_P(Plugin, ComponentContract,
                         ::testing::ValuesIn(components_of(TREADLE_PLUGIN_FOLDER,
                                                           {{"first_step", {{"path", "moment"}}}})),
                         CaseName());

}  // namespace

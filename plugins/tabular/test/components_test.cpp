#include <treadle/testing/component_contract.h>

namespace treadle::testing {
namespace {

INSTANTIATE_TEST_SUITE_P(Plugin, ComponentContract,
                         ::testing::ValuesIn(components_of(TREADLE_PLUGIN_FOLDER,
                                                           {{"scale", {{"factor", 0.5}}}})),
                         CaseName());

}  // namespace
}  // namespace treadle::testing

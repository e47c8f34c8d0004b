#include <treadle/testing/component_contract.h>

namespace treadle::testing {
namespace {

INSTANTIATE_TEST_SUITE_P(Plugin, ComponentContract,
                         ::testing::ValuesIn(components_of(
                             TREADLE_PLUGIN_FOLDER,
                             {{"hive", {{"rows", 2}, {"columns", 1}, {"cells", "dense"}}}})),
                         CaseName());

}  // namespace
}  // namespace treadle::testing

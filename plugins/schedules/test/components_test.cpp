#include <treadle/testing/component_contract.h>

namespace treadle::testing {
namespace {

INSTANTIATE_TEST_SUITE_P(Plugin, ComponentContract,
                         ::testing::ValuesIn(components_of(
                             TREADLE_PLUGIN_FOLDER,
                             {{"multi_step", {{"milestones", {"50%", "75%"}}}},
                              {"sequential",
                               {{"schedules", {{{"use", "constant"}}, {{"use", "cosine"}}}},
                                {"milestones", {"50%"}}}}})),
                         CaseName());

}  // namespace
}  // namespace treadle::testing

#include <treadle/testing/component_contract.h>

namespace treadle::testing {
namespace {

INSTANTIATE_TEST_SUITE_P(
    Plugin, ComponentContract,
    ::testing::ValuesIn(components_of(TREADLE_PLUGIN_FOLDER,
                                      {{"freeze", {{"parameters", {"hidden.*"}}}},
                                       {"scale_learning_rate",
                                        {{"when", {{"after", "1ep"}}}, {"factor", 0.5}}},
                                       {"stop", {{"when", {{"after", "1ep"}}}}},
                                       {"time_limit", {{"limit", "2h"}}}})),
    CaseName());

}  // namespace
}  // namespace treadle::testing

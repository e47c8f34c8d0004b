#include <treadle/testing/component_contract.h>

namespace treadle::testing {
namespace {

using Json = nlohmann::json;

const Json kSteps = Json::array({{{"use", "identity"}}});
const Json kTwoFlows = Json::array({kSteps, kSteps});
const Json kRouter = {{"use", "softmax_router"}, {"num_experts", 2}};

INSTANTIATE_TEST_SUITE_P(
    Plugin, ComponentContract,
    ::testing::ValuesIn(
        components_of(TREADLE_PLUGIN_FOLDER,
                      {{"flow", {{"flow", kSteps}}},
                       {"residual", {{"body", kSteps}}},
                       {"at", {{"tags", {"x"}}}},
                       {"graph", {{"builder", "residual_mlp"}}},
                       {"grid", {{"rows", 1}, {"columns", 2}, {"cell", kSteps}}},
                       {"mixture_of_experts", {{"router", kRouter}, {"experts", kTwoFlows}}},
                       {"input", {{"names", {"x"}}}},
                       {"loop", {{"body", kSteps}, {"times", 2}}},
                       {"map", {{"body", kSteps}}},
                       {"merge", {{"with", "mean"}}},
                       {"split", {{"branches", kTwoFlows}}},
                       {"switch", {{"router", "fixed_selector"}, {"branches", kTwoFlows}}},
                       {"tag_group", {{"group", "x"}}},
                       {"constant", {{"value", {1, 2}}}},
                       {"parameter", {{"shape", {2}}}},
                       {"recompute", {{"body", {"identity"}}}},
                       {"grid_cat", {{"grid", {1, 2, 1}}, {"positions", {{0, 1, 0}, {0, 0, 0}}}}},
                       {"reshape", {{"shape", {-1, 2}}}},
                       {"softmax_router", {{"num_experts", 2}}},
                       {"sigmoid_router", {{"num_experts", 2}}},
                       {"argmax_selector", {{"num_branches", 2}}}})),
    CaseName());

}  // namespace
}  // namespace treadle::testing

// Rows A42-A52 as layers, and flows of every verb as models.
#include <treadle/testing/layer_contract.h>
#include <treadle/testing/model_contract.h>

#include "test/this_plugin.h"

namespace treadle::testing {
namespace {

using Json = nlohmann::json;
using Shapes = std::vector<std::vector<std::int64_t>>;

LayerCase layer(std::string name, const std::string& component, Json parameters = Json::object(),
                Shapes inputs = {{6}}) {
  LayerCase one;
  one.name = std::move(name);
  one.make = [component, parameters = std::move(parameters)] {
    return plugin().make<LayerFactory>(component, parameters);
  };
  one.inputs = std::move(inputs);
  return one;
}

LayerCase chooses(LayerCase one) {
  one.is_differentiable = false;
  one.works_row_by_row = false;
  return one;
}

const Shapes kTwo{{6}, {6}};
const Json kNet = Json::array({{{"use", "sigmoid_router"}, {"experts", 6}}});

INSTANTIATE_TEST_SUITE_P(
    Ready, LayerContract,
    ::testing::Values(layer("Add", "add", {}, kTwo), layer("Mean", "mean", {}, {{6}, {6}, {6}}),
                      layer("Multiply", "multiply", {}, kTwo), layer("Cat", "cat", {}, {{6}, {2}}),
                      layer("StateAdd", "state_add", {}, kTwo),
                      layer("StateAddAtFirst", "state_add", {}, {{6}, {}}),
                      layer("Identity", "identity"),
                      layer("Reshape", "reshape", {{"sizes", {-1, 2, 3}}}),
                      layer("SoftmaxRouter", "softmax_router", {{"experts", 3}}),
                      layer("SigmoidRouter", "sigmoid_router", {{"experts", 3}}, kTwo),
                      chooses(layer("FixedSelector", "fixed_selector")),
                      chooses(layer("ArgmaxSelector", "argmax_selector", {{"branches", 3}})),
                      chooses(layer("ThresholdHalt", "threshold_halt")),
                      layer("LearnedHalt", "learned_halt")),
    CaseName());

INSTANTIATE_TEST_SUITE_P(
    Verbs, LayerContract,
    ::testing::Values(
        layer("Also", "also", {{"body", kNet}}), layer("Flow", "flow", {{"flow", kNet}}),
        layer("Gate", "gate",
              {{"router", {{"use", "softmax_router"}, {"experts", 2}}}, {"experts", {kNet, kNet}}}),
        layer("Loop", "loop", {{"body", kNet}, {"times", 3}}),
        layer("LoopOfRowsThatHaltByThemselves", "loop",
              {{"body", kNet}, {"adaptive", "learned_halt"}, {"at_most", 4}, {"ponder_cost", 0}}),
        layer("Recompute", "recompute", {{"body", kNet}}),
        layer("MapOfRows", "map", {{"body", kNet}}),
        layer("MapOfSlices", "map", {{"body", kNet}, {"slices", 2}, {"batched", true}}, {{12}})),
    CaseName());

ModelCase flow(std::string name, Json steps, ModelSpec spec = ModelCase::table_spec()) {
  return {std::move(name),
          [steps = std::move(steps)] {
            return plugin().make<ModelProvider>("flow", {{"flow", steps}});
          },
          std::move(spec)};
}

Json dense(int width) {
  return {{"use", "sigmoid_router"}, {"experts", width}};
}

INSTANTIATE_TEST_SUITE_P(
    Flow, ModelContract,
    ::testing::Values(
        flow("Chain", {dense(4), dense(3)}),
        flow("TwoOutputs", {dense(5)}, ModelCase::table_spec(6, {3, 2})),
        flow("Residual", {{{"use", "also"}, {"body", {dense(6)}}}, dense(3)}),
        flow("Branches", {{{"use", "split"}, {"branches", {{dense(4)}, {dense(4), dense(2)}}}},
                          {{"use", "merge"}, {"with", "cat"}},
                          dense(3)}),
        flow("Refined",
             {dense(4), {{"use", "loop"}, {"body", {dense(4)}}, {"times", 3}}, dense(3)}),
        flow("Experts", {{{"use", "gate"},
                          {"router", {{"use", "softmax_router"}, {"experts", 2}}},
                          {"experts", {{dense(4)}, {dense(4)}}}},
                         dense(3)}),
        flow("References", {{{"use", "sigmoid_router"}, {"experts", 6}, {"tag", "a"}},
                            {{"use", "sigmoid_router"}, {"experts", 3}, {"using", {"a"}}}})),
    CaseName());

}  // namespace
}  // namespace treadle::testing

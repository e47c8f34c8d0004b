// Layers of the control of flow, and flows of every verb as models.
#include <ATen/ops/cat.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <treadle/testing/model/layer_contract.h>
#include <treadle/testing/model/model_contract.h>

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

LayerCase by_hand(LayerCase one, decltype(LayerCase::by_hand) computed) {
  one.by_hand = std::move(computed);
  return one;
}

/// sigmoid(x W^T + b), of the `index`-th weight and bias.
at::Tensor projected(const at::Tensor& x, const std::vector<at::Tensor>& weights,
                     std::size_t index) {
  return at::linear(x, weights.at(2 * index), weights.at(2 * index + 1)).sigmoid();
}

at::Tensor three_rounds(const Layer& layer, const std::vector<at::Tensor>& inputs,
                        const HandOn& hand_on) {
  const std::vector<at::Tensor> weights = layer.parameters();
  at::Tensor state = projected(inputs[0], weights, 0);
  for (int round = 1; round < 3; ++round)
    state = projected(hand_on(state), weights, 0);
  return state;
}

/// Adaptive computation time (Graves 2016, equations 5 to 8) of at most four rounds, row by row.
at::Tensor rounds_until_each_halts(const Layer& layer, const std::vector<at::Tensor>& inputs,
                                   const HandOn& hand_on) {
  constexpr double kEnough = 1 - 0.01;
  const std::vector<at::Tensor> weights = layer.parameters();  // of the body, of the halting
  std::vector<at::Tensor> rows;
  for (std::int64_t row = 0; row < inputs[0].size(0); ++row) {
    at::Tensor state = inputs[0].narrow(0, row, 1);
    at::Tensor halted = at::zeros({1, 1}, at::kDouble);
    at::Tensor output = at::zeros_like(state);
    for (int round = 0; round < 4; ++round) {
      state = projected(round == 0 ? state : hand_on(state), weights, 0);
      const at::Tensor probability = projected(state, weights, 1);
      const bool is_last = round == 3 || halted.add(probability).item<double>() >= kEnough;
      output = output.add(state.mul(is_last ? halted.neg().add(1) : probability));
      if (is_last)
        break;
      halted = halted.add(probability);
    }
    rows.push_back(output);
  }
  return at::cat(rows, 0);
}

const Shapes kTwo{{6}, {6}};
const Json kNet = Json::array({{{"use", "sigmoid_router"}, {"num_experts", 6}}});

INSTANTIATE_TEST_SUITE_P(
    Ready, LayerContract,
    ::testing::Values(layer("Add", "add", {}, kTwo), layer("Mean", "mean", {}, {{6}, {6}, {6}}),
                      layer("Multiply", "multiply", {}, kTwo), layer("Cat", "cat", {}, {{6}, {2}}),
                      layer("GridCat", "grid_cat",
                            {{"grid", {2, 2, 1}}, {"positions", {{1, 0, 0}, {0, 1, 0}, {0, 0, 0}}}},
                            {{6}, {2}, {1}}),
                      layer("StateAdd", "state_add", {}, kTwo),
                      layer("StateAddAtFirst", "state_add", {}, {{6}, {}}),
                      layer("Identity", "identity"),
                      chooses(layer("Constant", "constant", {{"value", {{1, 2}, {3, 4}}}})),
                      layer("Parameter", "parameter", {{"shape", {2, 3}}}),
                      layer("Reshape", "reshape", {{"shape", {-1, 2, 3}}}),
                      layer("SoftmaxRouter", "softmax_router", {{"num_experts", 3}}),
                      layer("SigmoidRouter", "sigmoid_router", {{"num_experts", 3}}, kTwo),
                      chooses(layer("FixedSelector", "fixed_selector")),
                      chooses(layer("ArgmaxSelector", "argmax_selector", {{"num_branches", 3}})),
                      chooses(layer("ThresholdHalt", "threshold_halt")),
                      layer("LearnedHalt", "learned_halt")),
    CaseName());

INSTANTIATE_TEST_SUITE_P(
    Verbs, LayerContract,
    ::testing::Values(layer("ResidualConnection", "residual", {{"body", kNet}}),
                      layer("Flow", "flow", {{"flow", kNet}}),
                      layer("MixtureOfExperts", "mixture_of_experts",
                            {{"router", {{"use", "softmax_router"}, {"num_experts", 2}}},
                             {"experts", {kNet, kNet}}}),
                      layer("MixtureThatPads", "mixture_of_experts",
                            {{"router", {{"use", "softmax_router"}, {"num_experts", 2}}},
                             {"experts", {kNet, {{{"use", "sigmoid_router"}, {"num_experts", 2}}}}},
                             {"pad", true}}),
                      layer("SparseMixture", "mixture_of_experts",
                            {{"router", {{"use", "softmax_router"}, {"num_experts", 2}}},
                             {"experts", {kNet, {{{"use", "sigmoid_router"}, {"num_experts", 2}}}}},
                             {"pad", true},
                             {"sparse", true}}),
                      by_hand(layer("Loop", "loop", {{"body", kNet}, {"times", 3}}), three_rounds),
                      by_hand(layer("LoopOfRowsThatHaltByThemselves", "loop",
                                    {{"body", kNet},
                                     {"adaptive", "learned_halt"},
                                     {"at_most", 4},
                                     {"ponder_cost", 0}}),
                              rounds_until_each_halts),
                      layer("Recompute", "recompute", {{"body", kNet}}),
                      layer("MapOfRows", "map", {{"body", kNet}}),
                      layer("MapOfSlices", "map",
                            {{"body", kNet}, {"slices", 2}, {"batched", true}}, {{12}})),
    CaseName());

ModelCase flow(std::string name, Json steps, ModelSpec spec = ModelCase::table_spec()) {
  return {std::move(name),
          [steps = std::move(steps)] {
            return plugin().make<ModelProvider>("flow", {{"flow", steps}});
          },
          std::move(spec)};
}

Json dense(int width) {
  return {{"use", "sigmoid_router"}, {"num_experts", width}};
}

INSTANTIATE_TEST_SUITE_P(
    Flow, ModelContract,
    ::testing::Values(
        flow("Chain", {dense(4), dense(3)}),
        flow("TwoOutputs", {dense(5)}, ModelCase::table_spec(6, {3, 2})),
        flow("Residual", {{{"use", "residual"}, {"body", {dense(6)}}}, dense(3)}),
        flow("Branches", {{{"use", "split"}, {"branches", {{dense(4)}, {dense(4), dense(2)}}}},
                          {{"use", "merge"}, {"with", "cat"}},
                          dense(3)}),
        flow("Refined",
             {dense(4), {{"use", "loop"}, {"body", {dense(4)}}, {"times", 3}}, dense(3)}),
        flow("Experts", {{{"use", "mixture_of_experts"},
                          {"router", {{"use", "softmax_router"}, {"num_experts", 2}}},
                          {"experts", {{dense(4)}, {dense(4)}}}},
                         dense(3)}),
        flow("References", {{{"use", "sigmoid_router"}, {"num_experts", 6}, {"tag", "a"}},
                            {{"use", "sigmoid_router"}, {"num_experts", 3}, {"using", {"a"}}}})),
    CaseName());

}  // namespace
}  // namespace treadle::testing

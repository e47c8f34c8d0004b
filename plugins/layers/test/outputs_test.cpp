// Further outputs beside the formulas: the last states of recurrent layers, the weights of
// attention.
#include <cmath>
#include <string>
#include <vector>

#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <treadle/core/model/abilities/names_outputs.h>
#include <treadle/tensor/task_random.h>
#include <treadle/testing/component/case_name.h>
#include <treadle/testing/plugin/plugin_under_test.h>

#include "recurrent_by_hand.h"

namespace treadle::testing {
namespace {

using Json = nlohmann::json;

std::shared_ptr<Layer> made(const std::string& name, const Json& parameters,
                            const std::vector<at::Tensor>& inputs) {
  static const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  LayerSpec spec;
  spec.dtype = at::kDouble;
  for (const at::Tensor& input : inputs) {
    spec.inputs.push_back(TensorSpec::of(input));
    spec.inputs.back().sizes[0] = TensorSpec::kVaries;
  }
  const TaskRandom random(5);
  return plugin.make<LayerFactory>(name, parameters)->create(spec);
}

/// What it returns, then the outputs of those names.
std::vector<at::Tensor> outputs_of(Layer& layer, const std::vector<at::Tensor>& inputs,
                                   const std::vector<std::string>& names) {
  LayerContext context;
  context.request_outputs(names);
  std::vector<at::Tensor> outputs{layer.forward(inputs, context)};
  for (at::Tensor& output : context.take_outputs())
    outputs.push_back(std::move(output));
  return outputs;
}

struct RecurrentCase {
  std::string name;
  std::string layer;
  Json parameters;
  bool has_lengths = false;
};

class LastStates : public ::testing::TestWithParam<RecurrentCase> {};

TEST_P(LastStates, AreThoseOfTheEquations) {
  const auto& [name, kind, parameters, has_lengths] = GetParam();
  const TaskRandom random(2);
  std::vector<at::Tensor> inputs{at::randn({4, 5, 3}, at::kDouble)};
  if (has_lengths)
    inputs.push_back(at::tensor(std::vector<std::int64_t>{2, 5, 1, 3}, at::kLong));
  const auto layer = made(kind, parameters, inputs);
  const std::vector<std::string> names = dynamic_cast<NamesOutputs&>(*layer).output_names();
  const at::Tensor expected = RecurrentByHand(kind, parameters).last_states(*layer, inputs);
  const auto parts = expected.chunk(static_cast<std::int64_t>(names.size()), 2);

  const std::vector<at::Tensor> outputs = outputs_of(*layer, inputs, names);

  for (std::size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(outputs[i + 1].sizes(), parts[i].sizes()) << names[i];
    EXPECT_TRUE(outputs[i + 1].allclose(parts[i], 1e-12, 1e-13)) << names[i];
  }
}

const Json kDeep{{"hidden_size", 3}, {"num_layers", 2}, {"bidirectional", true}};
INSTANTIATE_TEST_SUITE_P(
    Layers, LastStates,
    ::testing::Values(RecurrentCase{"Rnn", "rnn", {{"hidden_size", 3}}},
                      RecurrentCase{"DeepRnn", "rnn", kDeep},
                      RecurrentCase{"DeepGru", "gru", kDeep},
                      RecurrentCase{"Lstm", "lstm", {{"hidden_size", 3}}},
                      RecurrentCase{"DeepLstm", "lstm", kDeep},
                      RecurrentCase{"GruWithLengths", "gru", {{"hidden_size", 3}}, true},
                      RecurrentCase{"DeepLstmWithLengths", "lstm", kDeep, true}),
    CaseName());

TEST(LastStates, OfRowsWithoutStepsAreZeros) {
  const std::vector<at::Tensor> inputs{at::randn({2, 3, 2}, at::kDouble),
                                       at::tensor(std::vector<std::int64_t>{0, 2}, at::kLong)};
  const auto layer = made("lstm", {{"hidden_size", 2}}, inputs);

  for (const at::Tensor& state : outputs_of(*layer, inputs, {"h_n", "c_n"})) {
    EXPECT_EQ(state[0].abs().sum().item<double>(), 0);
    EXPECT_NE(state[1].abs().sum().item<double>(), 0);
  }
}

// softmax(Q Kᵀ / √d), by hand for one head; the layer's result is then these weights times V.
TEST(AttentionWeights, AreThoseThatTheResultIsMadeWith) {
  const TaskRandom random(7);
  const std::vector<at::Tensor> inputs{at::randn({2, 4, 6}, at::kDouble)};
  const auto layer = made("attention", Json::object(), inputs);
  const auto parameters = layer->named_parameters();
  const auto in = at::linear(inputs[0], parameters["in_weight"], parameters["in_bias"]).chunk(3, 2);
  const at::Tensor by_hand =
      at::softmax(at::matmul(in[0], in[1].transpose(1, 2)).div(std::sqrt(6.0)), -1);

  const auto outputs = outputs_of(*layer, inputs, {"attn_weights"});

  EXPECT_TRUE(outputs[1].allclose(by_hand, 1e-12, 1e-13));
  EXPECT_TRUE(outputs[0].allclose(
      at::linear(at::matmul(outputs[1], in[2]), parameters["out_weight"], parameters["out_bias"]),
      1e-12, 1e-13));
}

TEST(AttentionWeights, AreTheMeanOverHeadsAndAddUpToOne) {
  const std::vector<at::Tensor> inputs{at::randn({2, 4, 6}, at::kDouble),
                                       at::tensor(std::vector<std::int64_t>{3, 4}, at::kLong)};
  const auto layer = made("attention", {{"num_heads", 3}, {"is_causal", true}}, inputs);

  const at::Tensor weights = outputs_of(*layer, inputs, {"attn_weights"})[1];

  EXPECT_TRUE(weights.sum(-1).allclose(at::ones_like(weights.sum(-1))));
  EXPECT_EQ(weights.triu(1).abs().sum().item<double>(), 0) << "causal";
  EXPECT_EQ(weights[0].select(1, 3).abs().sum().item<double>(), 0) << "padding";
}

}  // namespace
}  // namespace treadle::testing

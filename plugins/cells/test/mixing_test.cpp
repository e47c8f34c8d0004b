// The mixed operation, beside its formula.
#include "mixing.h"

#include <cmath>
#include <vector>

#include <ATen/ops/allclose.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <treadle/tensor/task_random.h>

namespace treadle::cells {
namespace {

LayerSpec spec_of(std::vector<TensorSpec> inputs) {
  LayerSpec spec;
  spec.inputs = std::move(inputs);
  spec.dtype = at::kDouble;
  return spec;
}

TensorSpec rows(std::vector<std::int64_t> row) {
  row.insert(row.begin(), TensorSpec::kVaries);
  return {std::move(row), at::kDouble};
}

Config choices() {
  return Config(
      nlohmann::json{{"structure", "cell"},
                     {"places",
                      {{{"name", "0_1"}, {"node", "1"}, {"operations", {"skip", "a"}}},
                       {{"name", "0_2"}, {"node", "2"}, {"operations", {"skip", "a", "b"}}}}}});
}

void set_alphas(OperationWeights& layer, const at::Tensor& values) {
  const at::NoGradGuard no_gradients;
  layer.named_parameters()["alphas"].copy_(values);
}

at::Tensor forward(Layer& layer, const std::vector<at::Tensor>& inputs, LayerContext& context) {
  return layer.forward(inputs, context);
}

TEST(OperationWeightsTest, AreTheSoftmaxOfTheOperationsThatThereAre) {
  OperationWeights layer(choices(), spec_of({rows({4})}));
  set_alphas(layer,
             at::tensor({0.0, std::log(3.0), 50.0, 0.0, std::log(2.0), std::log(5.0)}, at::kDouble)
                 .view({2, 3}));
  const at::Tensor expected =
      at::tensor({0.25, 0.75, 0.0, 0.125, 0.25, 0.625}, at::kDouble).view({2, 3});
  EXPECT_TRUE(at::allclose(layer.weights(), expected)) << layer.weights();
  LayerContext context;
  const at::Tensor given = forward(layer, {at::randn({2, 4}, at::kDouble)}, context);
  ASSERT_EQ(given.sizes(), at::IntArrayRef({2, 2, 3}));
  EXPECT_TRUE(at::allclose(given[1], expected));
  // -(0.25 ln 0.25 + 0.75 ln 0.75) and -(0.125 ln 0.125 + 0.25 ln 0.25 + 0.625 ln 0.625), their
  // mean
  ASSERT_EQ(context.reports().size(), 1);
  EXPECT_NEAR(context.reports().front().value.item<double>(), 0.7312956, 1e-6);
}

TEST(OperationWeightsTest, OnesThatAreNotAllowedWeighNothing) {
  OperationWeights layer(choices(), spec_of({rows({4})}));
  layer.allow(1, {true, false, true});
  EXPECT_TRUE(at::allclose(layer.weights()[1], at::tensor({0.5, 0.0, 0.5}, at::kDouble)));
  EXPECT_EQ(layer.allowed(1), (std::vector{true, false, true}));
  layer.allow(1, {false, false, false});
  EXPECT_TRUE(at::allclose(layer.weights()[1], at::zeros_like(layer.weights()[1])));
  layer.allow(1, {true, true, true});
  EXPECT_TRUE(at::allclose(layer.weights()[1], at::tensor({1.0, 1.0, 1.0}, at::kDouble).div(3)));
  EXPECT_EQ(layer.allowed(0).size(), 2);
}

TEST(MixedOperationTest, TheGradientOfAlphasIsThatOfTheFormula) {
  const TaskRandom random(5);
  OperationWeights weights(choices(), spec_of({rows({4})}));
  WeightedSum sum(Config(nlohmann::json{{"choice", 1}}),
                  spec_of({rows({4}), rows({4}), rows({4}), rows({2, 3})}));
  set_alphas(weights, at::randn({2, 3}, at::kDouble));
  const at::Tensor stream = at::randn({6, 4}, at::kDouble);
  const std::vector<at::Tensor> outputs{at::randn({6, 4}, at::kDouble),
                                        at::randn({6, 4}, at::kDouble),
                                        at::randn({6, 4}, at::kDouble)};
  const at::Tensor gradient = at::randn({6, 4}, at::kDouble);
  LayerContext context;
  const at::Tensor mixed = forward(
      sum, {outputs[0], outputs[1], outputs[2], forward(weights, {stream}, context)}, context);
  const at::Tensor w = weights.weights()[1];
  EXPECT_TRUE(at::allclose(mixed, outputs[0] * w[0] + outputs[1] * w[1] + outputs[2] * w[2]));
  mixed.backward(gradient);
  // d alpha_i = w_i (g . o_i - sum over j of w_j g . o_j)
  const at::Tensor products =
      at::stack({(gradient * outputs[0]).sum(), (gradient * outputs[1]).sum(),
                 (gradient * outputs[2]).sum()});
  const at::Tensor expected = w * (products - (w * products).sum());
  const at::Tensor found = weights.named_parameters()["alphas"].grad();
  EXPECT_TRUE(at::allclose(found[1], expected)) << found[1] << expected;
  EXPECT_EQ(found[0].abs().max().item<double>(), 0);
}

}  // namespace
}  // namespace treadle::cells

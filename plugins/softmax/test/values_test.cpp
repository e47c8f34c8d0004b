// Variants of softmax beside closed forms; what is drawn, and what does not fit.
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <ATen/ops/equal.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/adaptive.h>

#include <treadle/base/error.h>
#include <treadle/core/model/layer.h>
#include <treadle/tensor/task_random.h>
#include <treadle/testing/plugin/plugin_under_test.h>

namespace treadle::testing {
namespace {

using Json = nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

const PluginUnderTest& plugin() {
  static const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  return plugin;
}

std::shared_ptr<Layer> layer_of(const std::string& component, const Json& parameters,
                                const std::vector<TensorSpec>& inputs) {
  LayerSpec spec;
  spec.dtype = at::kDouble;
  spec.inputs = inputs;
  const TaskRandom random(1);
  return plugin().make<LayerFactory>(component, parameters)->create(spec);
}

TensorSpec rows_of(std::int64_t width, at::ScalarType dtype = at::kDouble) {
  return {{TensorSpec::kVaries, width}, dtype};
}

at::Tensor result_of(const std::string& component, const Json& parameters, const at::Tensor& z) {
  LayerContext context;
  return layer_of(component, parameters, {rows_of(z.size(1))})->forward(std::vector{z}, context);
}

at::Tensor row(const std::vector<double>& numbers) {
  return at::tensor(numbers, at::kDouble).unsqueeze(0);
}

// Martins and Astudillo (2016), section 2.3: in two dimensions, p = (t + 1) / 2, clamped to 0
// and 1.
TEST(Sparsemax, IsTheProjectionToTheSimplex) {
  EXPECT_TRUE(at::equal(result_of("sparsemax", {}, row({1, 0})), row({1, 0})));
  EXPECT_TRUE(result_of("sparsemax", {}, row({0.3, 0})).allclose(row({0.65, 0.35})));
  EXPECT_TRUE(at::equal(result_of("sparsemax", {}, row({5, -1, 2})), row({1, 0, 0})));
  EXPECT_TRUE(
      result_of("sparsemax", {}, row({0.5, 0.5, 0.1})).allclose(row({1.4 / 3, 1.4 / 3, 0.2 / 3})));
  const TaskRandom random(1);
  const at::Tensor weights = result_of("sparsemax", {}, at::randn({50, 9}, at::kDouble).mul(3));
  EXPECT_TRUE(weights.sum(1).allclose(at::ones({50}, at::kDouble)));
  EXPECT_TRUE(weights.ge(0).all().item<bool>());
  EXPECT_GT(weights.eq(0).to(at::kDouble).mean().item<double>(), 0.5);
}

// With two numbers and alpha 1.5, p = s² with s_i = z_i / 2 - tau, s_1² + s_2² = 1: the difference
// d of the s gives s_2 = (√(2 - d²) - d) / 2.
TEST(Entmax, HasItsClosedFormForTwoNumbers) {
  for (const double z : {0.0, 0.4, 1.0, 1.9}) {
    const double d = z / 2;
    const double s = (std::sqrt(2 - d * d) - d) / 2;
    const double p = s > 0 ? s * s : 0;
    EXPECT_TRUE(result_of("entmax", {{"alpha", 1.5}}, row({z, 0})).allclose(row({1 - p, p}))) << z;
  }
  EXPECT_TRUE(at::equal(result_of("entmax", {{"alpha", 1.5}}, row({2.1, 0})), row({1, 0})));
}

TEST(Entmax, LiesBetweenSoftmaxAndSparsemax) {
  const TaskRandom random(1);
  const at::Tensor z = at::randn({20, 7}, at::kDouble).mul(2);
  EXPECT_TRUE(result_of("entmax", {{"alpha", 1.9999999}}, z)
                  .allclose(result_of("sparsemax", {}, z), 0, 1e-5));
  EXPECT_TRUE(result_of("entmax", {{"alpha", 1.0001}}, z).allclose(at::softmax(z, 1), 0, 1e-3));
  const at::Tensor sorted = result_of("entmax", {{"alpha", 1.5}}, z);
  const at::Tensor bisected = result_of("entmax", {{"alpha", 1.5000001}}, z);
  EXPECT_TRUE(sorted.allclose(bisected, 0, 1e-5)) << "1.5 is sorted, its neighbour is not";
  for (const double alpha : {1.2, 1.5, 1.8, 3.0}) {
    EXPECT_TRUE(
        result_of("entmax", {{"alpha", alpha}}, z).sum(1).allclose(at::ones({20}, at::kDouble)))
        << alpha;
  }
}

TEST(TreeSoftmax, GivesLeavesTheProductAlongTheirPath) {
  const TaskRandom random(1);
  const at::Tensor z = at::randn({4, 8}, at::kDouble);  // 2 children, with 3 leaves each
  const at::Tensor first = at::softmax(z.narrow(1, 0, 2), 1);
  const at::Tensor second = at::softmax(z.narrow(1, 2, 6).view({4, 2, 3}), 2);
  const at::Tensor expected = first.unsqueeze(2).mul(second).flatten(1);

  EXPECT_TRUE(result_of("tree_softmax", {{"levels", {2, 3}}}, z).allclose(expected));
}

TEST(MaskedSoftmax, GivesZerosAndZeroGradientsWhereAllIsMasked) {
  const auto layer = layer_of("masked_softmax", {}, {rows_of(3), rows_of(3, at::kBool)});
  const at::Tensor z = row({1, 2, 3}).repeat({2, 1}).set_requires_grad(true);
  at::Tensor mask = at::ones({2, 3}, at::kBool);
  mask[0].fill_(false);
  mask[1][2].fill_(false);
  LayerContext context;

  const at::Tensor weights = layer->forward(std::vector{z, mask}, context);
  weights.square().sum().backward();

  EXPECT_TRUE(at::equal(weights[0].detach(), at::zeros({3}, at::kDouble)));
  EXPECT_TRUE(weights[1].narrow(0, 0, 2).allclose(at::softmax(row({1, 2}), 1)[0]));
  EXPECT_EQ(weights[1][2].item<double>(), 0);
  EXPECT_TRUE(at::equal(z.grad()[0], at::zeros({3}, at::kDouble)));
  EXPECT_TRUE(z.grad().isfinite().all().item<bool>());
}

TEST(GumbelSoftmax, DrawsInTrainingOnlyAndFromTheTask) {
  const auto layer = layer_of("gumbel_softmax", {{"temperature", 0.5}}, {rows_of(4)});
  const at::Tensor z = row({1, 2, 3, 4});
  const auto drawn = [&](std::uint64_t seed) {
    const TaskRandom random(seed);
    LayerContext context;
    return layer->forward(std::vector{z}, context);
  };
  EXPECT_TRUE(at::equal(drawn(1), drawn(1)));
  EXPECT_FALSE(at::equal(drawn(1), drawn(2)));
  layer->eval();
  EXPECT_TRUE(drawn(1).allclose(at::softmax(z.div(0.5), 1)));
}

// The frequencies of the largest are softmax(z): the Gumbel-max trick (Gumbel 1954).
TEST(GumbelSoftmax, PicksWithTheProbabilitiesOfSoftmaxWhereItIsHard) {
  const auto layer = layer_of("gumbel_softmax", {{"hard", true}}, {rows_of(3)});
  const at::Tensor z = row({0, 1, 2}).repeat({20'000, 1}).set_requires_grad(true);
  const TaskRandom random(1);
  LayerContext context;

  const at::Tensor picked = layer->forward(std::vector{z}, context);
  picked.select(1, 0).sum().backward();

  EXPECT_TRUE(picked.eq(0).logical_or(picked.eq(1)).all().item<bool>());
  EXPECT_TRUE(picked.detach().mean(0).allclose(at::softmax(row({0, 1, 2}), 1)[0], 0, 0.015));
  EXPECT_GT(z.grad().abs().sum().item<double>(), 0) << "the gradient of the soft numbers";
}

std::string mistake_in(const std::string& component, const Json& parameters,
                       const std::vector<TensorSpec>& inputs) {
  try {
    layer_of(component, parameters, inputs);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(AdaptiveLogSoftmax, HasLibtorchsValuesAndNames) {
  const TaskRandom random(1);
  torch::nn::AdaptiveLogSoftmaxWithLoss reference(
      torch::nn::AdaptiveLogSoftmaxWithLossOptions(8, 9, {3, 5}).div_value(2).head_bias(true));
  reference->to(at::kDouble);
  const auto layer =
      layer_of("adaptive_log_softmax",
               {{"num_classes", 9}, {"cutoffs", {3, 5}}, {"div_value", 2}, {"head_bias", true}},
               {rows_of(8)});
  const torch::NoGradGuard fixed;
  const auto wanted = reference->named_parameters();
  ASSERT_EQ(layer->named_parameters().keys(), wanted.keys());
  for (const auto& parameter : layer->named_parameters())
    parameter.value().copy_(wanted[parameter.key()]);
  const at::Tensor x = at::randn({5, 8}, at::kDouble);
  LayerContext context;

  EXPECT_TRUE(layer->forward(std::vector{x}, context).allclose(reference->log_prob(x), 0, 1e-12));
}

/// A router whose logits are its inputs.
std::shared_ptr<Layer> router_of_inputs(std::int64_t experts, Json parameters) {
  parameters["num_experts"] = experts;
  auto layer = layer_of("top_k_router", parameters, {rows_of(experts)});
  const torch::NoGradGuard fixed;
  layer->named_parameters()["weight"].copy_(at::eye(experts, at::kDouble));
  layer->named_parameters()["bias"].zero_();
  return layer;
}

// By hand: softmax(ln 4, ln 3, ln 1, ln 2) is 0.4, 0.3, 0.1, 0.2.
TEST(TopKRouter, KeepsTheLargestWeights) {
  const at::Tensor x = row({4, 3, 1, 2}).log();
  LayerContext context;
  const auto weights = [&](const Json& parameters) {
    return router_of_inputs(4, parameters)->forward(std::vector{x}, context);
  };
  EXPECT_TRUE(weights({{"top_k", 1}}).allclose(row({0.4, 0, 0, 0})));
  EXPECT_TRUE(weights({{"top_k", 2}}).allclose(row({4.0 / 7, 3.0 / 7, 0, 0})));
  EXPECT_TRUE(weights({{"top_k", 2}, {"normalize", false}}).allclose(row({0.4, 0.3, 0, 0})));
  EXPECT_TRUE(weights({{"top_k", 4}}).allclose(row({0.4, 0.3, 0.1, 0.2})));
  // Of temperature 1/2: squares, 16, 9, 1 and 4 of 30.
  EXPECT_TRUE(weights({{"top_k", 1}, {"temperature", 0.5}}).allclose(row({16.0 / 30, 0, 0, 0})));
  EXPECT_TRUE(weights({{"top_k", 4}, {"softmax", {{"use", "sparsemax"}}}})
                  .allclose(result_of("sparsemax", {}, x)));
}

// Four tokens that all choose expert 0, then 1; ceil(1 · 1 · 4 / 2) = 2 places each.
TEST(TopKRouter, GivesAFullExpertsTokensNoWeightInTraining) {
  const at::Tensor x = row({4, 1}).log().repeat({4, 1});
  const auto router = router_of_inputs(2, {{"capacity_factor", 1}});
  LayerContext context;
  const at::Tensor trained = router->forward(std::vector{x}, context);
  EXPECT_TRUE(trained.allclose(
      at::tensor({0.8, 0.0, 0.8, 0.0, 0.0, 0.0, 0.0, 0.0}, at::kDouble).view({4, 2})));
  double dropped = -1;
  for (const auto& report : context.reports())
    dropped = report.name == "dropped" ? report.value.item<double>() : dropped;
  EXPECT_EQ(dropped, 0.5);
  router->eval();
  EXPECT_TRUE(router->forward(std::vector{x}, context).allclose(row({0.8, 0}).repeat({4, 1})));
}

// First choices come before second ones: the second choice of token 0 is expert 1, of which token 1
// takes the only place. ceil(0.5 · 2 · 2 / 2) = 1.
TEST(TopKRouter, FillsExpertsWithFirstChoicesFirst) {
  const at::Tensor x = at::tensor({3.0, 1.0, 1.0, 3.0}, at::kDouble).log().view({2, 2});
  LayerContext context;
  const at::Tensor weights = router_of_inputs(2, {{"capacity_factor", 0.5}, {"top_k", 2}})
                                 ->forward(std::vector{x}, context);
  EXPECT_TRUE(weights.allclose(at::tensor({0.75, 0.0, 0.0, 0.75}, at::kDouble).view({2, 2})));
}

double loss_named(const std::string& name, Layer& layer, const at::Tensor& x) {
  LayerContext context;
  layer.forward(std::vector{x}, context);
  for (const auto& report : context.reports()) {
    if (report.is_loss && report.name == name)
      return report.value.item<double>();
  }
  return -1;
}

// By hand, of the definition: even choices give the coefficient for each of the rows; all tokens on
// one of two experts with P 0.8 give 2 · 1 · 0.8.
TEST(TopKRouter, AddsTheLossesOfTheSwitchTransformerAndOfStMoe) {
  const at::Tensor even = at::tensor({3.0, 1.0, 1.0, 3.0}, at::kDouble).log().view({2, 2});
  const at::Tensor uneven = row({4, 1}).log().repeat({2, 1});
  const auto router = router_of_inputs(2, {{"balance_coefficient", 0.5}, {"z_coefficient", 2}});
  EXPECT_NEAR(loss_named("balance", *router, even), 2 * 0.5, 1e-12);
  EXPECT_NEAR(loss_named("balance", *router, uneven), 2 * 0.5 * 1.6, 1e-12);
  EXPECT_NEAR(loss_named("z", *router, uneven), 2 * 2 * std::log(5) * std::log(5), 1e-12);
}

TEST(TopKRouter, DrawsNoiseInTrainingOnly) {
  const at::Tensor x = row({4, 3, 1, 2}).log();
  const auto router = router_of_inputs(4, {{"noise", 1}, {"top_k", 4}});
  const auto drawn = [&](std::uint64_t seed) {
    const TaskRandom random(seed);
    LayerContext context;
    return router->forward(std::vector{x}, context);
  };
  EXPECT_TRUE(at::equal(drawn(1), drawn(1)));
  EXPECT_FALSE(at::equal(drawn(1), drawn(2)));
  router->eval();
  EXPECT_TRUE(drawn(1).allclose(row({0.4, 0.3, 0.1, 0.2})));
}

TEST(SoftmaxMistakes, NameBothSizes) {
  EXPECT_THAT(mistake_in("temperature_softmax", {{"temperature", -1}}, {rows_of(3)}),
              AllOf(HasSubstr("temperature"), HasSubstr("-1")));
  EXPECT_THAT(mistake_in("masked_softmax", {{"mask", {true, false}}}, {rows_of(3)}),
              AllOf(HasSubstr("2"), HasSubstr("3")));
  EXPECT_THAT(mistake_in("masked_softmax", {}, {rows_of(3), rows_of(4, at::kBool)}),
              AllOf(HasSubstr("4]"), HasSubstr("3]")));
  EXPECT_THAT(mistake_in("grid_softmax", {{"rows", 2}, {"cols", 3}}, {rows_of(5)}),
              AllOf(HasSubstr("6"), HasSubstr("5")));
  EXPECT_THAT(mistake_in("tree_softmax", {{"levels", {2, 3}}}, {rows_of(6)}),
              AllOf(HasSubstr("8"), HasSubstr("6")));
  EXPECT_THAT(mistake_in("top_k_router", {{"num_experts", 3}, {"top_k", 4}}, {rows_of(5)}),
              AllOf(HasSubstr("top_k"), HasSubstr("4"), HasSubstr("3")));
  EXPECT_THAT(mistake_in("top_k_router",
                         {{"num_experts", 3},
                          {"softmax", {{"use", "mixture_softmax"}, {"num_components", 3}}}},
                         {rows_of(5)}),
              AllOf(HasSubstr("3]"), HasSubstr("1]")));
  EXPECT_THAT(
      mistake_in("adaptive_log_softmax", {{"num_classes", 4}, {"cutoffs", {2, 4}}}, {rows_of(5)}),
      AllOf(HasSubstr("cutoffs"), HasSubstr("4")));
}

}  // namespace
}  // namespace treadle::testing

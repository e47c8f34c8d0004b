#include <treadle/sdk.h>

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <c10/core/GradMode.h>
#include <torch/nn/modules/linear.h>

#include <treadle/testing/model/gradients_contract.h>
#include <treadle/testing/plugin/plugin_under_test.h>
#include <treadle/testing/training/training_fakes.h>

namespace {

using namespace treadle::testing;

std::unique_ptr<treadle::GradientStrategy> make(nlohmann::json parameters = {}) {
  static const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  return plugin.make<treadle::GradientStrategy>("@name@", std::move(parameters));
}

GradientsCase case_of(std::string name, bool exact, nlohmann::json parameters = {}) {
  return {std::move(name), [parameters] { return make(parameters); }, exact};
}

// What every strategy keeps: one case for each configuration that may behave differently. The
// models of the suite have matrices, but no filters.
INSTANTIATE_TEST_SUITE_P(@Name@, GradientStrategyContract,
                         ::testing::Values(case_of("Defaults", false),
                                           case_of("FiltersAlone", true, {{"from_dimensions", 3}})),
                         CaseName());

/// y = w1 x1 + w2 x2 + b with w = (1, 1) and b = 0.
std::shared_ptr<treadle::Model> sum_of_two() {
  auto layer = std::make_shared<torch::nn::LinearImpl>(2, 1);
  const at::NoGradGuard no_gradients;
  layer->to(at::kDouble);
  layer->weight.fill_(1);
  layer->bias.zero_();
  return treadle::adapt(std::move(layer));
}

treadle::Batch row(double x1, double x2, double target) {
  treadle::Batch batch;
  batch.inputs = {at::tensor({x1, x2}, at::kDouble).view({1, 2})};
  batch.targets = batch.original_targets = {at::full({1, 1}, target, at::kDouble)};
  batch.weights = at::ones({1}, at::kDouble);
  batch.rows = at::arange(1);
  return batch;
}

/// Of w1, w2 and b.
std::vector<double> gradients_of(const treadle::GradientStrategy& strategy,
                                 const std::vector<treadle::Batch>& batches) {
  const auto model = sum_of_two();
  const SquaredError loss;  // half of it
  const treadle::Objective objective = objective_of(loss);
  treadle::ForwardContext context;
  for (const treadle::Batch& batch : batches)
    strategy.add_gradients({model.get(), &objective}, batch, context);
  const auto named = model->named_parameters();
  const at::Tensor weight = named["net.weight"].grad();
  return {weight[0][0].item<double>(), weight[0][1].item<double>(),
          named["net.bias"].grad().item<double>()};
}

// By hand: y = 1 + 3 = 4, so the error is 4; 4 * (1, 3) = (4, 12), less its mean of 8. b has one
// dimension.
TEST(@Name@, TakesTheMeanFromTheWeightsOfAUnit) {
  EXPECT_EQ(gradients_of(*make(), {row(1, 3, 0)}), (std::vector<double>{-4, 4, 4}));
}

TEST(@Name@, LeavesParametersWithFewerDimensionsAsTheyAre) {
  EXPECT_EQ(gradients_of(*make({{"from_dimensions", 3}}), {row(1, 3, 0)}),
            (std::vector<double>{4, 12, 4}));
}

// By hand: the second row has y = 2 - 6 = -4 and the error -5; -5 * (2, -6) = (-10, 30), less 10.
TEST(@Name@, AddsUpOverBatches) {
  EXPECT_EQ(gradients_of(*make(), {row(1, 3, 0), row(2, -6, 1)}),
            (std::vector<double>{-4 - 20, 4 + 20, 4 - 5}));
}

TEST(@Name@, RefusesParametersOutOfRange) {
  EXPECT_THROW(make({{"from_dimensions", 1}}), treadle::DocumentError);
}

}  // namespace

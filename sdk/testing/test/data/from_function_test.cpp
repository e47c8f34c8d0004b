#include <memory>

#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>

#include <treadle/base/error.h>
#include <treadle/from_function.h>
#include <treadle/testing/model/metric_contract.h>

namespace treadle::testing {
namespace {

/// The weighted mean of the greatest error of each position.
double worst_of_each(const FunctionMetric::Rows& rows) {
  const at::Tensor errors = (rows.predictions - rows.targets).abs().amax(/*dim=*/1).to(at::kDouble);
  const at::Tensor weights = rows.weights.to(at::kDouble);
  return errors.mul(weights).sum().div(weights.sum()).item<double>();
}

std::unique_ptr<MetricComputer> of_numbers() {
  return std::make_unique<FunctionMetric>("worst", TargetKind::kNumbers, Direction::kLowerIsBetter,
                                          worst_of_each);
}

std::unique_ptr<MetricComputer> of_classes() {
  return std::make_unique<FunctionMetric>(
      "hits", TargetKind::kClasses, Direction::kHigherIsBetter,
      [](const FunctionMetric::Rows& rows) {
        const at::Tensor hits = rows.predictions.argmax(1).eq(rows.targets).to(at::kDouble);
        const at::Tensor weights = rows.weights.to(at::kDouble);
        return hits.mul(weights).sum().div(weights.sum()).item<double>();
      });
}

INSTANTIATE_TEST_SUITE_P(
    FromFunction, MetricContract,
    ::testing::Values(MetricCase{"Numbers", of_numbers, MetricCase::numbers(3)},
                      MetricCase{"NumbersByPosition", of_numbers,
                                 MetricCase::numbers(2, {kVaries})},
                      MetricCase{"Classes", of_classes, MetricCase::classes(4)},
                      MetricCase{"ClassesByPixel", of_classes, MetricCase::classes(3, {2, 3})}),
    CaseName());

TEST(FunctionModelProvider, MakesItsModel) {
  const FunctionModelProvider provider([](const ModelSpec& spec) {
    return adapt(std::make_shared<torch::nn::LinearImpl>(spec.inputs[0].shape[0], 1));
  });
  ModelSpec spec;
  spec.inputs = {{"features", {3}, {{"a", {}}, {"b", {}}, {"c", {}}}}};
  spec.targets = {treadle::number_target("y")};
  spec.outputs = {{"y", {1}}};
  EXPECT_EQ(provider.create(spec)->parameters().size(), 2U);
}

TEST(FromFunction, WithoutAFunctionIsAProgrammingError) {
  EXPECT_THROW(FunctionModelProvider(nullptr), ContractViolation);
  EXPECT_THROW(FunctionMetric("x", TargetKind::kNumbers, Direction::kNone, nullptr),
               ContractViolation);
}

}  // namespace
}  // namespace treadle::testing

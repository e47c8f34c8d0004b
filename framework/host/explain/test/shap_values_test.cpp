#include <treadle/host/explain/shap_values.h>

#include <ATen/ops/allclose.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/stack.h>
#include <gtest/gtest.h>

#include "explained.h"

namespace treadle::explain {
namespace {

double largest_gap(const ShapValues::Target& target) {
  return (target.values.sum(1) - (target.predicted - target.base)).abs().max().item<double>();
}

TEST(ShapValues, EqualExactOnesOfAModelWithInteractionsOfTwoColumns) {
  // An order and its reverse give both sides of a pair the same share, so nothing is left to
  // chance.
  const ExplainedRows rows = reference_rows();
  const ShapValues found =
      shap_values(rows, {.rows = rows.rows(), .background_rows = rows.rows()}, RandomStreams(3));
  const at::Tensor expected = numbers_of(reference().at("shapley"));
  EXPECT_TRUE(at::allclose(found.targets.front().values.narrow(0, 0, expected.size(0)).select(2, 0),
                           expected, 1e-10, 1e-10));
}

TEST(ShapValues, OfALinearModelAreItsWeightsTimesDifferencesFromTheMean) {
  const at::Tensor x = normal_numbers(40, 5, 2);
  const at::Tensor weights = normal_numbers(1, 5, 9);
  const ExplainedRows rows =
      regression(x, x.select(1, 0), [&](const at::Tensor& z) { return (z * weights).sum(1) + 3; });
  const ShapValues found = shap_values(rows, {.rows = 40, .background_rows = 40}, RandomStreams(3));
  const at::Tensor expected = weights * (x - x.mean(0, /*keepdim=*/true));
  EXPECT_TRUE(at::allclose(found.targets.front().values.select(2, 0), expected, 0, 1e-6));
}

TEST(ShapValues, AddUpToThePredictionMinusTheMeanOfTheBackground) {
  const at::Tensor x = normal_numbers(60, 6, 2);
  ExplainedRows rows{{class_target("y", {"a", "b", "c"})}, columns_of(table_of(6)), {}};
  rows.parts.push_back(
      part_of(x, x.select(1, 0).gt(0).to(at::kLong), TargetKind::kClasses, [](const at::Tensor& z) {
        return at::softmax(at::stack({z.prod(1), z.sum(1).sin(), z.select(1, 0).exp()}, 1), 1);
      }));
  const ShapValues found = shap_values(rows, {.rows = 20, .background_rows = 7}, RandomStreams(3));
  EXPECT_EQ(found.targets.front().values.sizes(), at::IntArrayRef({20, 6, 3}));
  EXPECT_LT(largest_gap(found.targets.front()), 1e-12);
}

TEST(ShapValues, CompareARowWithItsOwnPartAndModel) {
  const at::Tensor x = normal_numbers(20, 2, 2);
  ExplainedRows rows =
      regression(x, x.select(1, 0), [](const at::Tensor& z) { return z.select(1, 0) * 1; });
  rows.parts.push_back(part_of(x + 100, x.narrow(1, 0, 1), TargetKind::kNumbers,
                               [](const at::Tensor& z) { return z.select(1, 0) * 2; }));
  const ShapValues found = shap_values(rows, {.rows = 40, .background_rows = 20}, RandomStreams(3));
  const at::Tensor base = found.targets.front().base.select(1, 0);
  EXPECT_NEAR(base[0].item<double>(), x.select(1, 0).mean().item<double>(), 1e-12);
  EXPECT_NEAR(base[39].item<double>(), 2 * (100 + x.select(1, 0).mean().item<double>()), 1e-9);
}

TEST(ShapValues, OfOneColumnAreTheWholeDifference) {
  const at::Tensor x = normal_numbers(10, 1, 2);
  const ExplainedRows rows =
      regression(x, x.select(1, 0), [](const at::Tensor& z) { return z.select(1, 0).exp(); });
  const ShapValues found = shap_values(rows, {}, RandomStreams(3));
  EXPECT_LT(largest_gap(found.targets.front()), 1e-12);
}

TEST(ShapValues, KeepToTheNumberOfPredictions) {
  const at::Tensor x = normal_numbers(300, 40, 2);
  ExplainedRows rows = regression(x, x.select(1, 0), [](const at::Tensor& z) { return z.sum(1); });
  std::int64_t predicted = 0;
  const auto predict = rows.parts.front().predict;
  rows.parts.front().predict = [&](const Batch& batch) {
    predicted += batch.size();
    return predict(batch);
  };
  const ShapValues found = shap_values(rows, {.most_predictions = 20'000}, RandomStreams(3));
  EXPECT_LE(predicted, 20'000 + 600);
  EXPECT_EQ(found.background_rows, 10);
  EXPECT_EQ(found.places.size(0), 25);  // 20000 predictions / (2 * 40 columns) / 10
}

}  // namespace
}  // namespace treadle::explain

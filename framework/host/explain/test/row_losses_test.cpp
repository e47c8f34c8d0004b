#include <treadle/host/explain/row_losses.h>

#include <ATen/ops/allclose.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "explained.h"

namespace treadle::explain {
namespace {

using ::testing::ElementsAre;

at::Tensor classes(std::vector<std::int64_t> numbers) {
  return at::tensor(numbers, at::kLong);
}

Batch rows_with(const at::Tensor& target) {
  Batch rows;
  rows.targets = rows.original_targets = {target};
  rows.rows = at::arange(target.size(0), at::kLong);
  return rows;
}

TEST(RowLosses, OfClassesHaveScikitLearnsLogLossAsTheirMean) {
  const at::Tensor losses =
      row_losses({TargetKind::kClasses, numbers_of(reference().at("probabilities"))},
                 rows_with(numbers_of(reference().at("classes")).to(at::kLong)), 0,
                 class_target("y", {"a", "b", "c"}));
  EXPECT_NEAR(losses.mean().item<double>(), reference().at("log_loss").get<double>(), 1e-12);
}

TEST(RowLosses, OfPositionsAreTheirMeanWithoutPadding) {
  Batch rows =
      rows_with(at::tensor(std::vector<double>{1, 2, 3, 4, 5, 6}, at::kDouble).view({3, 2, 1}));
  rows.position_weights = {
      at::tensor(std::vector<double>{1, 1, 1, 0, 0, 0}, at::kDouble).view({3, 2})};
  const TargetSpec spec{.name = "y", .shape = {2, 1}};
  const at::Tensor losses = row_losses({TargetKind::kNumbers, rows.targets[0] * 0}, rows, 0, spec);
  EXPECT_EQ(losses[0].item<double>(), 2.5);
  EXPECT_EQ(losses[1].item<double>(), 9);
  EXPECT_TRUE(std::isnan(losses[2].item<double>()));
}

TEST(Largest, AreTheFirstOfEqualsWithoutNaN) {
  const at::Tensor values = at::tensor(std::vector<double>{2, std::nan(""), 7, 2, 7}, at::kDouble);
  EXPECT_TRUE(largest(values, 3).equal(classes({2, 4, 0})));
  EXPECT_EQ(largest(values, 10).size(0), 4);
}

TEST(WrongConfidence, IsTheProbabilityOfAWrongDecision) {
  const at::Tensor p =
      at::tensor(std::vector<double>{0.9, 0.1, 0.2, 0.8, 0.6, 0.4}, at::kDouble).view({3, 2});
  const at::Tensor confidence = wrong_confidence({TargetKind::kClasses, p}, classes({1, 1, 1}),
                                                 class_target("y", {"a", "b"}));
  EXPECT_EQ(confidence[0].item<double>(), 0.9);
  EXPECT_TRUE(std::isnan(confidence[1].item<double>()));
  EXPECT_EQ(confidence[2].item<double>(), 0.6);
}

TEST(Doubts, AreLargestWhereTwoClassesAreAsLikely) {
  const at::Tensor p =
      at::tensor(std::vector<double>{0.5, 0.5, 0, 0.9, 0.05, 0.05}, at::kDouble).view({2, 3});
  const at::Tensor doubt = doubts({TargetKind::kClasses, p}, class_target("y", {"a", "b", "c"}));
  EXPECT_NEAR(doubt[0].item<double>(), 1, 1e-12);
  EXPECT_NEAR(doubt[1].item<double>(), 0.15, 1e-12);
}

TEST(Doubts, OfNumbersAreTheWidthBetweenQuantiles) {
  const at::Tensor middle = at::arange(2, at::kDouble).view({2, 1});
  Prediction prediction{TargetKind::kNumbers, middle};
  EXPECT_FALSE(doubts(prediction, number_target("y")).defined());
  prediction.extras = {{"q0.9", middle + 2, 0.9}, {"q0.1", middle * -1, 0.1}};
  EXPECT_TRUE(at::allclose(doubts(prediction, number_target("y")),
                           at::tensor(std::vector<double>{2, 4}, at::kDouble)));
}

TEST(LossBuckets, HaveEachRowOnce) {
  const at::Tensor losses = normal_numbers(101, 1, 4).select(1, 0).abs();
  std::vector<std::size_t> counts;
  for (const LossBucket& bucket : loss_buckets(losses))
    counts.push_back(bucket.places.size());
  EXPECT_THAT(counts, ElementsAre(50, 25, 15, 5, 4, 2));
}

}  // namespace
}  // namespace treadle::explain

#include <treadle/host/explain/permutation_importance.h>

#include <cmath>

#include <ATen/ops/cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>

#include "explained.h"

namespace treadle::explain {
namespace {

using ::testing::ElementsAre;

std::vector<std::vector<std::size_t>> each_alone(const ExplainedRows& rows) {
  std::vector<std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < rows.columns.size(); ++i)
    groups.push_back({i});
  return groups;
}

std::vector<Importance> importances(const ExplainedRows& rows, std::int64_t repeats) {
  return permutation_importance(rows, each_alone(rows), {mean_loss(rows, 0)}, repeats,
                                RandomStreams(5))
      .front();
}

TEST(PermutationImportance, EqualsScikitLearns) {
  constexpr std::int64_t kRepeats = 400;
  const std::vector<Importance> found = importances(reference_rows(), kRepeats);
  const nlohmann::json& expected = reference().at("importance");
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double deviation = expected.at("deviation")[i].get<double>();
    // Other permutations: four standard errors of a mean of so many.
    EXPECT_NEAR(found[i].mean, expected.at("mean")[i].get<double>(),
                4 * deviation / std::sqrt(kRepeats))
        << i;
    EXPECT_NEAR(found[i].deviation / deviation, 1, 0.15) << i;
  }
}

TEST(PermutationImportance, OfAColumnThatTheModelIgnoresIsZero) {
  const at::Tensor x = normal_numbers(50, 3, 1);
  const ExplainedRows rows =
      regression(x, x.select(1, 0), [](const at::Tensor& z) { return z.select(1, 0) * 1; });
  const std::vector<Importance> found = importances(rows, 3);
  EXPECT_GT(found[0].mean, 0.5);
  EXPECT_EQ(found[1].mean, 0);
  EXPECT_EQ(found[1].deviation, 0);
  EXPECT_EQ(found[2].mean, 0);
}

TEST(PermutationImportance, OfAColumnDoesNotDependOnTheOtherGroups) {
  const ExplainedRows rows = reference_rows();
  const std::vector<Importance> all = importances(rows, 3);
  const std::vector<Importance> one =
      permutation_importance(rows, {{2}}, {mean_loss(rows, 0)}, 3, RandomStreams(5)).front();
  EXPECT_EQ(one.front().mean, all[2].mean);
}

TEST(PermutationImportance, OfAMeasureThatIsBetterWhenHigherIsItsLoss) {
  const ExplainedRows rows = reference_rows();
  const Measure loss = mean_loss(rows, 0);
  const Measure score{"score", Direction::kHigherIsBetter,
                      [&](const std::vector<Predictions>& all) { return Number(-loss.of(all)); }};
  const auto found = permutation_importance(rows, {{0}}, {loss, score}, 2, RandomStreams(5));
  EXPECT_EQ(found[0].front().mean, found[1].front().mean);
}

TEST(PermutationImportance, OfAnUndefinedMeasureIsUndefinedWithTheReason) {
  const ExplainedRows rows = reference_rows();
  const Measure nothing{"auc", Direction::kHigherIsBetter, [](const auto&) {
                          return Number::undefined("all rows are of class \"yes\"");
                        }};
  const auto found = permutation_importance(rows, {{0}}, {nothing}, 2, RandomStreams(5));
  EXPECT_EQ(found[0].front().mean.why(), "all rows are of class \"yes\"");
  EXPECT_TRUE(found[0].front().deviation.is_undefined());
}

TEST(PermutationImportance, PermutesWithinAPart) {
  // Parts with models of their own, whose columns have other levels: a value of another part would
  // change the loss by 10000.
  const at::Tensor x = normal_numbers(30, 1, 1);
  ExplainedRows rows =
      regression(x, x.select(1, 0), [](const at::Tensor& z) { return z.select(1, 0) * 1; });
  rows.parts.push_back(
      part_of(x + 100, x + 100, TargetKind::kNumbers, [](const at::Tensor& z) { return z * 1; }));
  EXPECT_LT(importances(rows, 3).front().mean, 10);
  EXPECT_GT(importances(rows, 3).front().mean, 0.5);
}

TEST(CorrelatedGroups, HaveColumnsOfStrongRankCorrelation) {
  const at::Tensor x = normal_numbers(200, 2, 3);
  const at::Tensor all = at::cat({x, x.narrow(1, 0, 1).exp(), -x.narrow(1, 0, 1)}, 1);
  const ExplainedRows rows =
      regression(all, x.select(1, 0), [](const at::Tensor& z) { return z.select(1, 0) * 1; });
  EXPECT_THAT(correlated_groups(rows), ElementsAre(ElementsAre(0, 2, 3), ElementsAre(1)));
}

TEST(CorrelatedGroups, ArePermutedTogether) {
  // The model needs only the difference, which stays when both have the same permutation.
  const at::Tensor x = normal_numbers(100, 1, 3);
  const at::Tensor both = at::cat({x, x}, 1);
  const ExplainedRows rows = regression(both, x.select(1, 0) * 0, [](const at::Tensor& z) {
    return z.select(1, 0) - z.select(1, 1);
  });
  const auto found = permutation_importance(rows, correlated_groups(rows), {mean_loss(rows, 0)}, 3,
                                            RandomStreams(5));
  ASSERT_EQ(found.front().size(), 1U);
  EXPECT_EQ(found.front().front().mean, 0);
}

TEST(ColumnsOf, AreChannelsOfWindowsAndWholeImages) {
  const DataSpec spec{
      .inputs = {{.name = "past", .shape = {24, 2}, .columns = {{"load"}, {"heat"}}},
                 {.name = "photo", .shape = {1, 8, 8}, .role = Role::kImage}}};
  const std::vector<ExplainedColumn> columns = columns_of(spec);
  ASSERT_EQ(columns.size(), 3U);
  EXPECT_EQ(columns[1].name, "heat");
  EXPECT_FALSE(columns[1].is_flat);
  EXPECT_TRUE(columns[1].has_values);
  EXPECT_EQ(columns[2].places.front().index, Place::kWhole);
}

TEST(ColumnsOf, RefusesTexts) {
  const DataSpec spec{.inputs = {{.name = "text", .shape = {kVaries}, .role = Role::kTokens}}};
  try {
    columns_of(spec);
    FAIL();
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("input \"text\" has tokens of texts"));
  }
}

TEST(PutColumn, ReplacesAllStepsOfAChannel) {
  Batch rows;
  rows.inputs = {at::arange(12, at::kDouble).view({2, 3, 2})};  // [rows, steps, channels]
  rows.rows = at::arange(2, at::kLong);
  Batch changed = repeated(rows, 1);
  put_column({.name = "second", .places = {{0, 1}}}, rows,
             at::tensor(std::vector<std::int64_t>{1, 0}, at::kLong), changed, 0);
  const at::Tensor expected = rows.inputs[0].clone();
  expected.select(2, 1).copy_(rows.inputs[0].select(2, 1).flip(0));
  EXPECT_TRUE(changed.inputs[0].equal(expected));
}

}  // namespace
}  // namespace treadle::explain

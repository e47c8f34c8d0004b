#include <treadle/host/run/row_disagreement.h>

#include <ATen/TensorOperators.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>

namespace treadle {
namespace {

using testing::ElementsAre;

constexpr double kRoundingOfRows = 1e-12;

/// Three classifiers on five rows, by the probability of class 1, and where they are right:
///   target   1   1   0   0   1
///   first    0.9 0.6 0.2 0.4 0.1   rows 0 1 2 3
///   second   0.8 0.3 0.1 0.3 0.7   rows 0 2 3 4
///   third    0.4 0.2 0.9 0.8 0.9   row 4
ComparedPredictions::Target three_classifiers() {
  ComparedPredictions::Target target;
  target.spec = class_target("colour", {"blue", "red"});
  target.actual = at::tensor({1, 1, 0, 0, 1}, at::kLong);
  for (const auto& ones : {at::tensor({0.9, 0.6, 0.2, 0.4, 0.1}, at::kDouble),
                           at::tensor({0.8, 0.3, 0.1, 0.3, 0.7}, at::kDouble),
                           at::tensor({0.4, 0.2, 0.9, 0.8, 0.9}, at::kDouble)})
    target.predicted.push_back(at::stack({1 - ones, ones}, 1));
  return target;
}

TEST(ClassDisagreement, CountsRowsThatAllNoneAndOneHaveRight) {
  const ClassDisagreement found = class_disagreement(three_classifiers());

  EXPECT_EQ(found.rows, 5);
  EXPECT_THAT(found.accuracy, ElementsAre(0.8, 0.8, 0.2));
  EXPECT_EQ(found.all_right, 0);
  EXPECT_EQ(found.none_right, 0);
  EXPECT_THAT(found.alone, ElementsAre(1, 0, 0)) << "row 1";
  EXPECT_THAT(found.disagreements, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_NEAR(found.agreement[0][1].item<double>(), 0.6, kRoundingOfRows);
  EXPECT_NEAR(found.agreement[1][2].item<double>(), 0.4, kRoundingOfRows);
  EXPECT_EQ(found.agreement[2][2].item<double>(), 1);
}

TEST(ClassDisagreement, SortsPairsByCoverageThenByOverlap) {
  const ClassDisagreement found = class_disagreement(three_classifiers());

  using Pair = ClassDisagreement::Pair;
  // First and third: both never, so all rows but none twice. First and second: all rows, three
  // twice. Second and third: four rows, one twice.
  ASSERT_EQ(found.pairs.size(), 3U);
  const Pair& best = found.pairs[0];
  EXPECT_EQ(best.first, 0U);
  EXPECT_EQ(best.second, 2U);
  EXPECT_EQ(best.coverage, 1);
  EXPECT_EQ(best.overlap, 0);
  EXPECT_EQ(found.pairs[1].coverage, 1);
  EXPECT_NEAR(found.pairs[1].overlap, 0.6, kRoundingOfRows);
  EXPECT_NEAR(found.pairs[2].coverage, 0.8, kRoundingOfRows);
  // scipy.stats.binomtest(1, 5, 0.5).pvalue of 4 rows against 1
  EXPECT_EQ(best.only_first, 4);
  EXPECT_EQ(best.only_second, 1);
  EXPECT_NEAR(best.p, 0.375, kRoundingOfRows);
  EXPECT_NEAR(best.p_holm, 0.75, kRoundingOfRows) << "of 0.25, 0.375 and 1, the second";
}

TEST(ClassDisagreement, MeasuresTheAverageOfTheProbabilities) {
  const ClassDisagreement found = class_disagreement(three_classifiers());

  // Of the second with the first: 0.85 0.45 0.15 0.35 0.4, so rows 0, 2 and 3 are right, although
  // their coverage is 1: an oracle's.
  EXPECT_EQ(found.pairs[1].first, 0U);
  EXPECT_EQ(found.pairs[1].second, 1U);
  EXPECT_NEAR(found.pairs[1].averaged_accuracy, 0.6, kRoundingOfRows);
}

TEST(ClassDisagreement, OfLabelsCountsRowsWithAllLabelsRight) {
  ComparedPredictions::Target target;
  target.spec.name = "tags";
  target.spec.kind = TargetKind::kLabels;
  target.spec.class_names = {"a", "b"};
  target.actual = at::tensor({1.0, 0.0, 1.0, 1.0}, at::kDouble).view({2, 2});
  target.predicted = {at::tensor({0.9, 0.1, 0.8, 0.4}, at::kDouble).view({2, 2}),
                      at::tensor({0.6, 0.6, 0.8, 0.6}, at::kDouble).view({2, 2})};

  const ClassDisagreement found = class_disagreement(target);

  EXPECT_THAT(found.accuracy, ElementsAre(0.5, 0.5)) << "row 0 of the first, row 1 of the second";
  EXPECT_EQ(found.pairs[0].coverage, 1);
}

TEST(ClassDisagreement, CountsPositionsOfSequences) {
  ComparedPredictions::Target target;
  target.spec = class_target("tag", {"a", "b"}, {3});
  target.actual = at::tensor({0, 1, 1, 0, 0, 0}, at::kLong).view({2, 3});
  const at::Tensor ones = at::tensor({0.1, 0.9, 0.9, 0.1, 0.9, 0.1}, at::kDouble).view({2, 3});
  target.predicted = {at::stack({1 - ones, ones}, -1), at::stack({1 - ones, ones}, -1)};

  const ClassDisagreement found = class_disagreement(target);

  EXPECT_EQ(found.rows, 6);
  EXPECT_NEAR(found.accuracy[0], 5.0 / 6, kRoundingOfRows);
  EXPECT_TRUE(found.disagreements.empty());
}

// NumPy 1.24.2 and SciPy 1.10.1: ea, eb = a - t, b - t; numpy.sqrt((ea**2).mean());
// numpy.corrcoef(ea, eb)[0, 1]; numpy.sqrt((((a + b) / 2 - t)**2).mean()); d = ea**2 - eb**2;
// d.mean(); scipy.stats.compare::wilcoxon(d, mode="exact").pvalue
TEST(NumberDisagreement, MeasuresErrorsTogetherAndApart) {
  ComparedPredictions::Target target;
  target.spec = number_target("y");
  target.actual = at::tensor({1.0, 2.0, 3.0, 4.0, 5.0, 6.0}, at::kDouble).view({6, 1});
  target.predicted = {at::tensor({1.1, 1.8, 3.3, 4.1, 4.6, 6.2}, at::kDouble).view({6, 1}),
                      at::tensor({0.7, 2.4, 3.1, 3.0, 5.2, 7.5}, at::kDouble).view({6, 1})};

  const NumberDisagreement found = number_disagreement(target);

  EXPECT_NEAR(found.rmse[0], 0.24152294576982405, kRoundingOfRows);
  EXPECT_NEAR(found.rmse[1], 0.7691987172809551, kRoundingOfRows);
  ASSERT_EQ(found.pairs.size(), 1U);
  const NumberDisagreement::Pair& pair = found.pairs[0];
  EXPECT_NEAR(pair.correlation.value(), 0.022921716500348535, kRoundingOfRows);
  EXPECT_NEAR(pair.averaged_rmse, 0.4072263907623538, kRoundingOfRows);
  EXPECT_NEAR(pair.difference, -0.5333333333333333, kRoundingOfRows);
  EXPECT_LT(pair.interval->first, pair.difference);
  EXPECT_GT(pair.interval->second, pair.difference);
  EXPECT_NEAR(pair.p, 0.3125, kRoundingOfRows);
  EXPECT_EQ(found.disagreements.front(), 5) << "6.2 and 7.5";
  EXPECT_NEAR(found.spread[5].item<double>(), 1.3, kRoundingOfRows);
}

TEST(NumberDisagreement, OfOnePredictionIsNone) {
  ComparedPredictions::Target target;
  target.spec = number_target("y");
  target.actual = at::tensor({1.0, 2.0}, at::kDouble).view({2, 1});
  target.predicted = {target.actual + 1, target.actual + 1};

  const NumberDisagreement found = number_disagreement(target);

  EXPECT_EQ(found.pairs[0].p, 1);
  EXPECT_FALSE(found.pairs[0].correlation) << "errors without spread have none";
}

}  // namespace
}  // namespace treadle

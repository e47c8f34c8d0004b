#include <treadle/host/describe/correlations.h>

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reference.h"

namespace treadle::describe {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// The first column of the reference has an offset of 1e6, which costs what is not centred its
// digits; the last one is constant.
TEST(Pearson, EqualsScipys) {
  expect_near(pearson(numbers_of(reference().at("complete"))).values, reference().at("pearson"));
}

TEST(Pearson, LeavesMissingValuesOutPairByPair) {
  expect_near(pearson(numbers_of(reference().at("holes"))).values, reference().at("pearson_holes"));
}

TEST(Pearson, IsZeroWhereAColumnIsConstantAmongTheRowsOfThePair) {
  const double nan = std::nan("");
  const at::Tensor columns = at::stack({at::tensor({7.7, 7.7, 7.7, 9.1}, at::kDouble),
                                        at::tensor({1.0, 2.0, 4.0, nan}, at::kDouble)},
                                       1);

  EXPECT_THAT(pearson(columns).values, ElementsAre(1, 0, 0, 1));
  EXPECT_THAT(spearman(columns).values, ElementsAre(1, 0, 0, 1));
}

TEST(Pearson, KeepsItsValueForVeryLargeAndVerySmallNumbers) {
  const at::Tensor columns = numbers_of(reference().at("complete")).narrow(1, 1, 2);
  const CorrelationMatrix plain = pearson(columns);
  const CorrelationMatrix scaled =
      pearson(columns * at::tensor({1e-200, 1e200}, at::kDouble).unsqueeze(0));

  EXPECT_NEAR(scaled.at(0, 1), plain.at(0, 1), 1e-12);
}

TEST(Spearman, EqualsScipys) {
  expect_near(spearman(numbers_of(reference().at("complete"))).values, reference().at("spearman"));
}

TEST(Spearman, RanksTheRowsOfEachPairAnew) {
  expect_near(spearman(numbers_of(reference().at("holes"))).values,
              reference().at("spearman_holes"));
}

TEST(Correlations, CallColumnsWithoutNamesByTheirPlace) {
  const at::Tensor columns = numbers_of(reference().at("complete")).narrow(1, 0, 2);

  EXPECT_THAT(pearson(columns).labels, ElementsAre("Feature_0", "Feature_1"));
  EXPECT_THAT(pearson(columns, {"a"}).labels, ElementsAre("Feature_0", "Feature_1"));
  EXPECT_THAT(pearson(columns, {"a", "b"}).labels, ElementsAre("a", "b"));
}

TEST(Correlations, OfNoRowsAreEmpty) {
  EXPECT_TRUE(pearson(at::empty({0, 3}, at::kDouble)).empty());
  EXPECT_TRUE(spearman(at::empty({3, 0}, at::kDouble)).empty());
}

CorrelationMatrix three_columns() {
  return {{"a", "b", "c"}, {1, 0.5, -0.9, 0.5, 1, 0.2, -0.9, 0.2, 1}};
}

TEST(StrongPairs, AreThoseAtLeastSoStrongTheStrongestFirst) {
  const std::vector<CorrelatedPair> pairs = strong_pairs(three_columns(), 0.5);

  ASSERT_EQ(pairs.size(), 2U);
  EXPECT_EQ(pairs[0].first + pairs[0].second, "ac");
  EXPECT_EQ(pairs[0].value, -0.9);
  EXPECT_EQ(pairs[1].first + pairs[1].second, "ab");
}

TEST(PartnersOf, AreAllOtherColumns) {
  const std::vector<CorrelatedPair> partners = partners_of(three_columns(), "c");

  ASSERT_EQ(partners.size(), 2U);
  EXPECT_EQ(partners[0].second, "a");
  EXPECT_EQ(partners[1].second, "b");
  EXPECT_THAT(partners_of(three_columns(), "d"), IsEmpty());
}

TEST(CorrectedCramersV, EqualsThatOfScipysChiSquare) {
  EXPECT_NEAR(
      corrected_cramers_v(codes_of(reference().at("first")), codes_of(reference().at("second"))),
      reference().at("cramers_v").get<double>(), kReferenceTolerance);
}

TEST(CorrectedCramersV, IsOneForTheSameCategoriesByOtherNames) {
  const at::Tensor codes = at::arange(60, at::kLong).remainder(3);

  EXPECT_DOUBLE_EQ(corrected_cramers_v(codes, 2 - codes), 1);
}

TEST(CorrectedCramersV, IsUndefinedForOneCategoryAndForKeys) {
  const at::Tensor keys = at::arange(60, at::kLong);

  EXPECT_TRUE(corrected_cramers_v(keys.remainder(3), keys * 0).is_undefined());
  EXPECT_TRUE(corrected_cramers_v(keys, keys).is_undefined());
}

TEST(CorrectedCorrelationRatio, EqualsThatOfScipysAnalysisOfVariance) {
  EXPECT_NEAR(corrected_correlation_ratio(codes_of(reference().at("first")),
                                          numbers_of(reference().at("ratio_numbers"))),
              reference().at("correlation_ratio").get<double>(), kReferenceTolerance);
}

TEST(CorrectedCorrelationRatio, IsUndefinedWhereNothingVaries) {
  const at::Tensor keys = at::arange(60, at::kLong);
  const at::Tensor numbers = keys.to(at::kDouble);

  EXPECT_TRUE(corrected_correlation_ratio(keys, numbers).is_undefined());
  EXPECT_TRUE(corrected_correlation_ratio(keys * 0, numbers).is_undefined());
  EXPECT_TRUE(corrected_correlation_ratio(keys.remainder(2), numbers * 0).is_undefined());
}

}  // namespace
}  // namespace treadle::describe

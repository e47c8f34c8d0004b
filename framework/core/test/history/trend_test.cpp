// Trends against hand calculations and Python's statistics:
//   python3 -c 'import statistics as s; y=[0.9,0.7,0.72,0.4,0.45];
//   print(s.linear_regression(range(5), y).slope, s.pvariance(y))'
#include <treadle/core/history/trend.h>

#include <cmath>

#include <gmock/gmock.h>

namespace treadle {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

const std::vector<double> kFalling{0.9, 0.7, 0.72, 0.4, 0.45};

TEST(Trend, GivesTheNewestValuesAndFewerWhereThereAreFewer) {
  const Trend trend(kFalling);

  EXPECT_THAT(trend.last(2), ElementsAre(0.4, 0.45));
  EXPECT_EQ(trend.last(9).size(), 5U);
  EXPECT_TRUE(trend.last(0).empty());
  EXPECT_TRUE(trend.last(-1).empty());
  EXPECT_EQ(trend.latest(), 0.45);
}

TEST(Trend, ItsMeanAndBoundsAreThoseOfTheWindow) {
  const Trend trend(kFalling);

  EXPECT_DOUBLE_EQ(trend.mean(), 0.634);
  EXPECT_DOUBLE_EQ(trend.mean(2), 0.425);
  EXPECT_EQ(trend.min(), 0.4);
  EXPECT_EQ(trend.max(), 0.9);
  EXPECT_EQ(trend.max(-3), 0.9) << "0 or less: all of them";
  EXPECT_EQ(trend.max(3), 0.72);
}

TEST(Trend, IsZeroAndFalseWithoutValues) {
  const Trend none;

  EXPECT_EQ(none.latest(), 0);
  EXPECT_EQ(none.mean(), 0);
  EXPECT_EQ(none.min(), 0);
  EXPECT_EQ(none.max(), 0);
  for (const Trend& trend : {none, Trend({0.5})}) {
    EXPECT_EQ(trend.slope(), 0);
    EXPECT_FALSE(trend.stalled(0, 1));
    EXPECT_FALSE(trend.improving());
    EXPECT_FALSE(trend.converged(0, 1));
  }
}

TEST(Trend, ItsSlopeIsThatOfLeastSquares) {
  const Trend trend(kFalling);

  EXPECT_THAT(trend.slope(), DoubleNear(-0.12, 1e-15));
  EXPECT_THAT(trend.slope(3), DoubleNear(-0.135, 1e-15));  // (0.45 - 0.72) / 2
  EXPECT_EQ(Trend({2, 4, 6}).slope(), 2);
  EXPECT_EQ(Trend({1e9 + 1, 1e9 + 2, 1e9 + 3}).slope(), 1) << "large numbers do not cancel";
}

TEST(Trend, StallsWhereItsSlopeIsSmallerThanTheTolerance) {
  const Trend trend({5, 1, 1.01, 1});

  EXPECT_TRUE(trend.stalled(3, 1e-3));
  EXPECT_FALSE(trend.stalled(0, 1e-3));
  EXPECT_FALSE(Trend({1, 2}).stalled(2, 1)) << "not equal to it";
  EXPECT_FALSE(Trend({2, 1}).stalled(2, 1)) << "neither down";
}

TEST(Trend, ImprovesInItsDirection) {
  EXPECT_TRUE(Trend({2, 1}).improving());
  EXPECT_FALSE(Trend({1, 1}).improving());
  EXPECT_FALSE(Trend({2, 1}, Direction::kHigherIsBetter).improving());
  EXPECT_TRUE(Trend({1, 2}, Direction::kHigherIsBetter).improving());
  EXPECT_TRUE(Trend({2, 1}, Direction::kNone).improving());
  EXPECT_TRUE(Trend({1, 3, 2}).improving(2));
}

TEST(Trend, ConvergesWhereItsVarianceIsSmallerThanTheTolerance) {
  const Trend trend({1, 2, 3, 4});  // population: 1.25; sample: 1.667

  EXPECT_TRUE(trend.converged(0, 1.26));
  EXPECT_FALSE(trend.converged(0, 1.25));
  EXPECT_TRUE(trend.converged(2, 0.26));
}

TEST(Trend, SaysNothingOfWhatIsNoNumber) {
  const Trend trend({1, std::nan(""), 2});

  EXPECT_FALSE(trend.stalled(0, 1e9));
  EXPECT_FALSE(trend.improving());
  EXPECT_FALSE(trend.converged(0, 1e9));
}

TEST(TrendGroup, AsksAllOrAnyOfItsTrends) {
  const Trend falling({3, 2, 1});
  const Trend flat({1, 1, 1});
  const TrendGroup both({falling, flat});

  EXPECT_FALSE(both.all_improving());
  EXPECT_TRUE(both.any_improving());
  EXPECT_FALSE(both.all_stalled(0, 0.5));
  EXPECT_TRUE(both.any_stalled(0, 0.5));
  EXPECT_TRUE(both.all_stalled(0, 1.5));
  EXPECT_FALSE(both.all_converged(0, 0.5));
  EXPECT_TRUE(both.any_converged(0, 0.5));
  EXPECT_TRUE(TrendGroup({falling, falling}).all_improving());
  EXPECT_TRUE(both.all_converged(0, 1));
  EXPECT_THAT(both.slopes(), ElementsAre(-1, 0));
  EXPECT_EQ(both.mean_slope(), -0.5);
}

TEST(TrendGroup, OfNothingNothingIsTrue) {
  const TrendGroup none;

  EXPECT_FALSE(none.all_improving());
  EXPECT_FALSE(none.any_improving());
  EXPECT_FALSE(none.all_stalled(0, 1));
  EXPECT_FALSE(none.any_stalled(0, 1));
  EXPECT_FALSE(none.all_converged(0, 1));
  EXPECT_FALSE(none.any_converged(0, 1));
  EXPECT_EQ(none.mean_slope(), 0);
  EXPECT_TRUE(none.slopes().empty());
}

}  // namespace
}  // namespace treadle

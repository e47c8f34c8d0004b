#include <treadle/search/trial_order.h>

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace treadle {
namespace {

TEST(TrialOrder, ATrialBreaksItsConstraintsByTheSumOfWhatIsAboveZero) {
  Trial trial;
  EXPECT_EQ(violation(trial), 0);
  trial.constraints = {-2, 0, 0.5, 1};
  EXPECT_EQ(violation(trial), 1.5);
  trial.constraints = {NAN, 1};
  EXPECT_EQ(violation(trial), std::numeric_limits<double>::infinity());
}

TEST(TrialOrder, OneDominatesThatIsNowhereWorseAndSomewhereBetter) {
  const double a[] = {1, 2};
  const double better[] = {1, 1};
  const double other[] = {0, 3};
  EXPECT_TRUE(dominates(better, a));
  EXPECT_FALSE(dominates(a, better));
  EXPECT_FALSE(dominates(a, a));
  EXPECT_FALSE(dominates(a, other));
  EXPECT_FALSE(dominates(other, a));
}

}  // namespace
}  // namespace treadle

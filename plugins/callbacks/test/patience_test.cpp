#include "patience.h"

#include <gtest/gtest.h>

#include <cmath>

namespace treadle::callbacks {
namespace {

Patience lower_is_better(std::int64_t patience, double alpha = 1, double min_delta = 0) {
  return Patience({alpha, min_delta, patience, Direction::kLowerIsBetter});
}

TEST(Patience, TheFirstValueNeverStops) {
  Patience stopping = lower_is_better(0);

  EXPECT_FALSE(stopping.step(5));
  EXPECT_TRUE(stopping.improved());
}

TEST(Patience, PatienceZeroStopsAtTheFirstValueThatIsNoBetter) {
  Patience stopping = lower_is_better(0);
  stopping.step(5);

  EXPECT_FALSE(stopping.step(4));
  EXPECT_TRUE(stopping.step(4));
  EXPECT_EQ(stopping.reason(), "no improvement for 1 epoch");
}

TEST(Patience, StopsAfterPatienceValuesInARow) {
  Patience stopping = lower_is_better(3);
  stopping.step(5);

  EXPECT_FALSE(stopping.step(6));
  EXPECT_FALSE(stopping.step(6));
  EXPECT_FALSE(stopping.step(4));  // counts anew
  EXPECT_FALSE(stopping.step(5));
  EXPECT_FALSE(stopping.step(5));
  EXPECT_TRUE(stopping.step(5));
  EXPECT_EQ(stopping.reason(), "no improvement for 3 epochs");
  EXPECT_EQ(stopping.best(), 4);
}

TEST(Patience, AnImprovementMustExceedMinDeltaStrictly) {
  Patience stopping = lower_is_better(1, 1, 0.5);
  stopping.step(5);

  EXPECT_TRUE(stopping.step(4.5));  // exactly min_delta is not enough

  Patience other = lower_is_better(1, 1, 0.5);
  other.step(5);
  EXPECT_FALSE(other.step(4.4));
}

// s1 = 10; s2 = 0.5 * 4 + 0.5 * 10 = 7; s3 = 0.5 * 8 + 0.5 * 7 = 7.5, by hand.
TEST(Patience, SmoothsExponentially) {
  Patience stopping = lower_is_better(1, 0.5);
  stopping.step(10);

  EXPECT_FALSE(stopping.step(4));
  EXPECT_DOUBLE_EQ(stopping.best(), 7);
  EXPECT_TRUE(stopping.step(8));  // 8 beats nothing, and 7.5 is no better than 7
}

TEST(Patience, HigherCanBeBetter) {
  Patience stopping({1, 0, 1, Direction::kHigherIsBetter});
  stopping.step(0.5);

  EXPECT_FALSE(stopping.step(0.6));
  EXPECT_TRUE(stopping.step(0.55));
}

TEST(Patience, StopsAtOnceWhenTheValueIsNotANumber) {
  Patience stopping = lower_is_better(100);
  stopping.step(5);

  EXPECT_TRUE(stopping.step(NAN));
  EXPECT_EQ(stopping.reason(), "the monitored value is not a number");
}

TEST(Patience, ContinuesFromItsState) {
  Patience whole = lower_is_better(4, 0.3, 0.01);
  Patience first = lower_is_better(4, 0.3, 0.01);
  const double values[] = {3, 2.5, 2.6, 2.4, 2.45, 2.41, 2.44, 2.5};
  for (int i = 0; i < 4; ++i) {
    whole.step(values[i]);
    first.step(values[i]);
  }

  Patience second = lower_is_better(4, 0.3, 0.01);
  second.load_state(first.state());

  for (int i = 4; i < 8; ++i) {
    EXPECT_EQ(whole.step(values[i]), second.step(values[i])) << i;
    EXPECT_EQ(whole.best(), second.best());
  }
}

}  // namespace
}  // namespace treadle::callbacks

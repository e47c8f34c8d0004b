#include <treadle/host/record/milestones.h>

#include <gtest/gtest.h>

namespace treadle {
namespace {

TrainingCurve curve_of(const std::string& name, const std::vector<Number>& values) {
  TrainingCurve curve{"final", {}};
  for (std::size_t i = 0; i < values.size(); ++i) {
    EpochSummary& epoch = curve.epochs.emplace_back();
    epoch.epoch = static_cast<std::int64_t>(i) + 1;
    epoch.seconds = 0.5;
    epoch.metrics = {{name, values[i], Direction::kHigherIsBetter}};
    epoch.val_loss = values[i];
  }
  return curve;
}

TEST(Milestones, OfAShareAreItsValues) {
  const Milestones found = milestones_of(curve_of("accuracy", {0.25, 0.2, 0.31, 0.55}),
                                         {"accuracy", 0.55, Direction::kHigherIsBetter});
  EXPECT_FALSE(found.are_shares);
  ASSERT_EQ(found.reached.size(), 5U);
  EXPECT_EQ(found.reached[1].level, 0.2);
  EXPECT_EQ(found.reached[1].epoch, 1);
  EXPECT_EQ(found.reached[2].epoch, 3);
  EXPECT_EQ(found.reached[2].value, 0.31);
  EXPECT_EQ(found.reached[4].seconds, 2);
}

TEST(Milestones, OfOtherNumbersArePartsOfTheWayToTheBest) {
  const Milestones found =
      milestones_of(curve_of("rmse", {8, 5, 9, 3, 4}), {"loss", 3, Direction::kLowerIsBetter});
  EXPECT_TRUE(found.are_shares);
  ASSERT_EQ(found.reached.size(), 10U);
  EXPECT_EQ(found.reached[5].epoch, 2);  // 8 - 0.6 * 5 is 5
  EXPECT_EQ(found.reached[6].epoch, 4);
  EXPECT_EQ(found.reached[9].value, 3);
}

TEST(Milestones, UndefinedNumbersReachNothing) {
  const Number unknown = Number::undefined("one class alone");
  EXPECT_TRUE(
      milestones_of(curve_of("auc", {unknown}), {"auc", unknown, Direction::kHigherIsBetter})
          .reached.empty());
  EXPECT_EQ(
      milestones_of(curve_of("auc", {unknown, 0.15}), {"auc", 0.15, Direction::kHigherIsBetter})
          .reached.at(0)
          .epoch,
      2);
}

}  // namespace
}  // namespace treadle

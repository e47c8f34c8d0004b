#include <treadle/core/training/adaptation.h>

#include <cmath>

#include <gmock/gmock.h>

#include <treadle/base/error.h>

namespace treadle {
namespace {

MetricValue accuracy(double value) {
  return {"accuracy", value, Direction::kHigherIsBetter};
}

/// Windows of 10 rows of a task that changes at row 25 and at row 40.
AdaptationTracker tracked() {
  AdaptationTracker tracker("a", {{25, "b"}, {40, "c"}});
  for (const double value : {0.6, 0.8, 0.5, 0.75, 0.2, 0.3, std::nan("")}) {
    tracker.count(4);
    tracker.count(6);
    tracker.end_window({accuracy(value)});
  }
  return tracker;
}

TEST(AdaptationTest, WindowsHaveTheTaskOfTheirFirstRow) {
  const AdaptationTracker tracker = tracked();

  std::string tasks;
  for (const AdaptationWindow& window : tracker.windows())
    tasks += window.task;
  EXPECT_EQ(tasks, "aaabccc");
  EXPECT_EQ(tracker.windows()[4].first_row, 40);
  EXPECT_EQ(tracker.rows(), 70);
}

TEST(AdaptationTest, RecoveryIsCountedFromTheWindowOfTheChangeToTheNextChange) {
  const AdaptationTracker tracker = tracked();

  const AdaptationSummary summary =
      summarize(tracker.windows(), tracker.changes(), {"accuracy", 0.7, 0.9});

  ASSERT_EQ(summary.changes.size(), 2U);
  const ChangeEffect& first = summary.changes[0];
  EXPECT_EQ(first.window, 2U);
  EXPECT_EQ(first.before[0].value, 0.8);
  EXPECT_EQ(first.after[0].value, 0.5);
  EXPECT_EQ(first.windows_to_threshold, 1);
  EXPECT_EQ(first.windows_to_share, 1);  // 0.9 * 0.8 = 0.72
  const ChangeEffect& second = summary.changes[1];
  EXPECT_EQ(second.window, 4U);
  EXPECT_EQ(second.before[0].value, 0.75);
  EXPECT_EQ(second.windows_to_threshold, std::nullopt);
  EXPECT_EQ(second.windows_to_share, std::nullopt);
}

TEST(AdaptationTest, AChangeBehindTheLastWindowHasNone) {
  const AdaptationTracker tracker = tracked();
  std::vector<TaskChange> changes = tracker.changes();
  changes.push_back({70, "d"});

  const AdaptationSummary summary =
      summarize(tracker.windows(), changes, {"accuracy", 0.7, std::nullopt});

  ASSERT_EQ(summary.changes.size(), 3U);
  EXPECT_EQ(summary.changes[2].window, std::nullopt);
  EXPECT_TRUE(summary.changes[2].after.empty());
  EXPECT_EQ(summary.changes[2].windows_to_threshold, std::nullopt);
}

// statistics.mean and statistics.pvariance of [.6, .8, .5, .75, .2, .3]: 0.525, 0.048125.
TEST(AdaptationTest, MeanAndPopulationVarianceLeaveOutWindowsWithoutAValue) {
  const AdaptationTracker tracker = tracked();

  const AdaptationSummary summary = summarize(tracker.windows(), {}, {"accuracy", {}, {}});

  EXPECT_NEAR(summary.means[0].value, 0.525, 1e-12);
  EXPECT_NEAR(summary.variances[0].value, 0.048125, 1e-12);
}

TEST(AdaptationTest, WhereLowerIsBetterTheLevelIsDividedByTheShare) {
  const std::vector<MetricValue> low{{"loss", 1.0, Direction::kLowerIsBetter}};
  const std::vector<MetricValue> high{{"loss", 1.3, Direction::kLowerIsBetter}};
  const std::vector<MetricValue> back{{"loss", 1.2, Direction::kLowerIsBetter}};
  const std::vector<AdaptationWindow> windows{
      {0, 5, "a", low}, {5, 5, "b", high}, {10, 5, "b", back}};
  const std::vector<TaskChange> changes{{5, "b"}};

  const AdaptationSummary summary = summarize(windows, changes, {"loss", {}, 0.8});  // 1.25

  EXPECT_EQ(summary.changes[0].windows_to_share, 1);
}

TEST(AdaptationTest, ItsStateGoesOnInTheOpenWindow) {
  AdaptationTracker tracker = tracked();
  tracker.count(3);
  AdaptationTracker other("", {});

  other.load_state(tracker.state());
  other.count(7);
  other.end_window({accuracy(1)});

  EXPECT_EQ(other.windows().size(), 8U);
  EXPECT_EQ(other.windows().back().rows, 10);
  EXPECT_EQ(other.windows().back().task, "c");
}

TEST(AdaptationTest, RefusesAMetricThatNoWindowHasAndChangesOutOfOrder) {
  const AdaptationTracker tracker = tracked();
  EXPECT_THROW(summarize(tracker.windows(), {}, {"f1", {}, {}}), UsageError);
  EXPECT_THROW(AdaptationTracker("a", {{5, "b"}, {5, "c"}}), UsageError);
}

}  // namespace
}  // namespace treadle

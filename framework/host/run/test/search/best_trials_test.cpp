#include "search/study/best_trials.h"

#include <cmath>

#include <gtest/gtest.h>

namespace treadle::internal {
namespace {

Trial trial(std::int64_t number, TrialState state, std::vector<double> values,
            std::vector<double> constraints = {}) {
  Trial made;
  made.number = number;
  made.state = state;
  made.values = std::move(values);
  made.constraints = std::move(constraints);
  return made;
}

Trial paused(std::int64_t number, std::int64_t step, double value) {
  Trial made = trial(number, TrialState::kPaused, {});
  made.intermediate = {{step, value}};
  return made;
}

constexpr TrialState kComplete = TrialState::kComplete;

TEST(BestTrials, TheBestKeepsTheConstraintsAndOfEqualOnesIsTheFirst) {
  EXPECT_EQ(best_complete({}), std::nullopt);
  EXPECT_EQ(best_complete({trial(0, TrialState::kPruned, {}), trial(1, kComplete, {3}),
                           trial(2, kComplete, {1}), trial(3, kComplete, {1})}),
            2);
  EXPECT_EQ(best_complete({trial(0, kComplete, {1}, {0.1}), trial(1, kComplete, {5}, {-1})}), 1);
  EXPECT_EQ(best_complete({trial(0, kComplete, {1}, {2}), trial(1, kComplete, {5}, {1})}), 1);
}

TEST(BestTrials, PatienceCountsWhatHasEndedSinceTheNewestBest) {
  EXPECT_EQ(trials_since_best({}), 0);
  EXPECT_EQ(trials_since_best({trial(0, TrialState::kFailed, {}), trial(1, kComplete, {3}),
                               trial(2, kComplete, {3}), trial(3, TrialState::kPruned, {}),
                               trial(4, TrialState::kRunning, {}), paused(5, 1, 0.1)}),
            2);
  EXPECT_EQ(trials_since_best(
                {trial(0, kComplete, {3}), trial(1, kComplete, {4}), trial(2, kComplete, {1})}),
            0);
  EXPECT_EQ(trials_since_best({trial(0, kComplete, {3}, {0}), trial(1, kComplete, {1}, {0.5})}), 1)
      << "one that breaks a constraint is no new best";
  EXPECT_EQ(trials_since_best({trial(0, kComplete, {1, 4}), trial(1, kComplete, {4, 1}),
                               trial(2, kComplete, {2, 5})}),
            1)
      << "one of the front is a new best";
}

TEST(BestTrials, OfPausedTrialsTheFurthestIsTheBestAndThenTheOneWithTheBestValue) {
  EXPECT_EQ(best_paused({trial(0, kComplete, {1})}), std::nullopt);
  EXPECT_EQ(best_paused({paused(0, 1, 0.1), paused(1, 3, 0.9), paused(2, 3, 0.5)}), 2);
  EXPECT_EQ(best_paused({paused(0, 3, NAN), paused(1, 3, 0.9)}), 1);
  EXPECT_EQ(best_paused({trial(0, TrialState::kPaused, {})}), std::nullopt) << "it has no value";
}

TEST(BestTrials, ATrialThatMayGoOnHasItsNewestValue) {
  EXPECT_EQ(newest_value(trial(0, kComplete, {3})), 3);
  Trial on_its_way = paused(1, 3, 0.5);
  EXPECT_EQ(newest_value(on_its_way), 0.5);
  on_its_way.state = TrialState::kRunning;
  EXPECT_EQ(newest_value(on_its_way), 0.5);
  on_its_way.state = TrialState::kPruned;
  EXPECT_EQ(newest_value(on_its_way), std::nullopt);
  EXPECT_EQ(newest_value(paused(1, 3, NAN)), std::nullopt);
  EXPECT_EQ(newest_value(trial(0, TrialState::kRunning, {})), std::nullopt);
}

TEST(BestTrials, TheFrontHasWhatNoTrialWithinTheConstraintsDominates) {
  EXPECT_EQ(pareto_front({trial(0, kComplete, {1, 4}), trial(1, TrialState::kFailed, {}),
                          trial(2, kComplete, {2, 2}), trial(3, kComplete, {3, 3}),
                          trial(4, kComplete, {0, 0}, {1}), trial(5, TrialState::kRunning, {}),
                          trial(6, kComplete, {2, 2})}),
            (std::vector<std::int64_t>{0, 2, 6}));
}

}  // namespace
}  // namespace treadle::internal

#include "search/budget/time_budget.h"

#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "search/study/study_end.h"

namespace treadle::internal {
namespace {

/// Trials with values, which took so long. The last training of one takes a tenth more.
class TimeBudgetOfTrials : public ::testing::Test {
 protected:
  static constexpr double kReserve = 1.1;

  void add(TrialState state, double value, double seconds) {
    StudyTrial& trial = trials_.emplace_back();
    trial.now.number = static_cast<std::int64_t>(shown_.size());
    trial.now.state = state;
    trial.now.intermediate = {{10, value}};
    if (state == TrialState::kComplete)
      trial.now.values = {value};
    trial.seconds = seconds;
    trial.timed_epochs = 10;
    shown_.push_back(trial.now);
  }

  TimeBudget budget(bool needs_complete = false) const {
    return {times_, /*members=*/0, /*workers=*/1, needs_complete};
  }

  std::vector<StudyTrial> trials_;
  std::vector<Trial> shown_;
  const TrainingTimes times_{trials_, 1, false, {10}};
};

TEST_F(TimeBudgetOfTrials, IsForTrialsAloneBeforeOneHasAValue) {
  TimeBudget budget = this->budget();
  EXPECT_EQ(budget.left_for_trials(6, shown_), 6);
  EXPECT_EQ(budget.best_trial(), std::nullopt);
}

TEST_F(TimeBudgetOfTrials, KeepsTheTimeOfTheBestThatThereIsTimeFor) {
  add(TrialState::kComplete, 3, 1);
  add(TrialState::kComplete, 1, 5);
  add(TrialState::kComplete, 2, 2);

  TimeBudget ample = budget();
  EXPECT_DOUBLE_EQ(ample.left_for_trials(6, shown_), 6 - kReserve * 5);
  EXPECT_EQ(ample.best_trial(), 1);

  TimeBudget tight = budget();
  EXPECT_DOUBLE_EQ(tight.left_for_trials(5, shown_), 5 - kReserve * 2);
  EXPECT_EQ(tight.best_trial(), 2);
}

TEST_F(TimeBudgetOfTrials, EndsTheSearchAtOnceWhereNoTrainingFitsAnyMore) {
  add(TrialState::kComplete, 3, 4);
  add(TrialState::kComplete, 1, 9);
  add(TrialState::kComplete, 2, 4.9);

  TimeBudget budget = this->budget();
  const double left = budget.left_for_trials(3, shown_);

  EXPECT_DOUBLE_EQ(left, 3 - kReserve * 4.9) << "the best of those that take little more than 4 s";
  EXPECT_LT(left, 0);
  const nlohmann::json ended = ended_by_time(shown_.size(), 3, budget.best_trial());
  EXPECT_EQ(ended.at("reason"), "time");
  EXPECT_EQ(ended.at("text"), "the time budget was used up after 3 jobs");
  EXPECT_EQ(ended.at("jobs"), 3);
  EXPECT_EQ(ended.at("best_trial"), 2);
}

TEST_F(TimeBudgetOfTrials, EndsTheSearchForTheBestAsSoonAsItsTimeHasCome) {
  add(TrialState::kComplete, 2, 1);
  add(TrialState::kComplete, 1, 4);
  TimeBudget budget = this->budget();
  EXPECT_GT(budget.left_for_trials(5, shown_), 0);

  EXPECT_LT(budget.left_for_trials(4.3, shown_), 0) << "instead of waiting until only trial 0 fits";
  EXPECT_EQ(budget.best_trial(), 1);
}

// Of the first trial of a process, which ASHA pauses after one epoch.
TEST_F(TimeBudgetOfTrials, DoesNotEndForTheVeryFirstEpochAlone) {
  add(TrialState::kPaused, 1, 3);
  trials_[0].timed_epochs = 1;
  trials_[0].epoch_times.add(2, /*is_first=*/true);
  TimeBudget budget = this->budget();
  EXPECT_EQ(budget.left_for_trials(6, shown_), 6) << "ten such epochs would not fit";

  add(TrialState::kPaused, 2, .5);
  trials_[1].timed_epochs = 1;
  trials_[1].epoch_times.add(.25, /*is_first=*/true);

  EXPECT_DOUBLE_EQ(budget.left_for_trials(5, shown_), 5 - kReserve * (.5 + 10 * .25));
  EXPECT_EQ(budget.best_trial(), 1);
}

TEST_F(TimeBudgetOfTrials, TakesAPausedTrialUnlessOnlyCompleteOnesCanBeTheBest) {
  add(TrialState::kComplete, 2, 1);
  add(TrialState::kPaused, 1, 1);

  TimeBudget any = budget();
  any.left_for_trials(9, shown_);
  EXPECT_EQ(any.best_trial(), 1);

  TimeBudget complete = budget(/*needs_complete=*/true);
  complete.left_for_trials(9, shown_);
  EXPECT_EQ(complete.best_trial(), 0);
}

}  // namespace
}  // namespace treadle::internal

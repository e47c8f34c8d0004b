#include "search/study/study_trial.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <treadle/base/error.h>

namespace treadle::internal {
namespace {

using Stage = JobStage::Stage;

constexpr Stage kStages[] = {JobStage::kTraining, JobStage::kInterrupted, JobStage::kPausing,
                             JobStage::kPruning,  JobStage::kCancelling,  JobStage::kFailing,
                             JobStage::kEnded};

TEST(JobStages, OnlyAdvance) {
  for (const Stage first : kStages) {
    for (const Stage second : kStages) {
      JobStage stage;
      stage.begin();
      stage.advance(first);
      stage.advance(second);
      EXPECT_EQ(stage, std::max(first, second)) << first << " " << second;
    }
  }
}

TEST(JobStages, BeginOnceTheLastJobHasEnded) {
  JobStage stage;
  stage.begin();
  EXPECT_EQ(stage, JobStage::kTraining);
  EXPECT_THROW(stage.begin(), ContractViolation);
  stage.advance(JobStage::kEnded);
  stage.begin();
  EXPECT_EQ(stage, JobStage::kTraining);
}

/// A trial of so many folds; each begins with the weights of the one before if they are `chained`.
StudyTrial trial_of(std::size_t folds, bool chained = false) {
  StudyTrial trial;
  trial.stage.begin();
  TrialTraining& training = trial.training.emplace();
  for (std::size_t i = 0; i < folds; ++i) {
    const std::string name = "fold-" + std::to_string(i + 1);
    TrialFit& fit = training.fits.emplace_back();
    fit.planned.id = FitId(name, static_cast<std::int64_t>(i), static_cast<std::int64_t>(folds));
    if (chained && i > 0)
      fit.planned.start = WarmStart{"fold-" + std::to_string(i)};
  }
  return trial;
}

/// The paths that an order starts, and those that it resumes.
std::pair<std::vector<std::string>, std::vector<std::string>> order(StudyTrial& trial) {
  FitPlanner::Orders orders;
  trial.training->order(orders);
  std::vector<std::string> started;
  for (const PlannedFit& fit : orders.start)
    started.push_back(fit.id.path());
  return {started, orders.resume};
}

using Paths = std::vector<std::string>;

TEST(TrialTrainings, StartAllFoldsAndResumeThoseThatHavePaused) {
  StudyTrial trial = trial_of(3);
  EXPECT_EQ(order(trial), std::pair(Paths({"fold-1", "fold-2", "fold-3"}), Paths()));
  EXPECT_EQ(order(trial), std::pair(Paths(), Paths())) << "all run";
  EXPECT_TRUE(trial.has_running_fit());

  trial.training->fits[0].state = TrialFit::State::kEnded;
  trial.training->fits[1].state = TrialFit::State::kPaused;
  EXPECT_EQ(order(trial), std::pair(Paths(), Paths({"fold-2"})));
}

TEST(TrialTrainings, AFoldWaitsForTheOneWhoseWeightsItBeginsWith) {
  StudyTrial trial = trial_of(2, /*chained=*/true);
  EXPECT_EQ(order(trial), std::pair(Paths({"fold-1"}), Paths()));
  EXPECT_EQ(order(trial), std::pair(Paths(), Paths()));

  trial.training->fits[0].state = TrialFit::State::kEnded;
  EXPECT_EQ(order(trial), std::pair(Paths({"fold-2"}), Paths()));
}

/// Whether the fit has a value after this epoch.
bool report(StudyTrial& trial, std::int64_t epoch, const std::optional<Number>& objective) {
  EpochSummary summary;
  summary.epoch = epoch;
  TrialFit& fit = trial.training->fits[0];
  if (!fit.slot)
    fit.slot = TrialFit::Slot{};
  return trial.report(fit, summary, objective);
}

TEST(StudyTrials, HaveTheLastValueAfterAnEvaluatedEpochThatWasNotValidated) {
  StudyTrial trial = trial_of(1);
  trial.next_evaluation = 3;
  EXPECT_TRUE(report(trial, 1, 0.5));
  EXPECT_FALSE(report(trial, 2, std::nullopt));
  EXPECT_FALSE(trial.is_due_after(2));
  EXPECT_TRUE(trial.is_due_after(3));
  EXPECT_TRUE(report(trial, 3, std::nullopt));

  ASSERT_EQ(trial.now.intermediate.size(), 2U);
  EXPECT_EQ(trial.now.intermediate[1].step, 3);
  EXPECT_EQ(trial.now.intermediate[1].value, 0.5);
  EXPECT_TRUE(trial.training->have_all_reached(3));
  EXPECT_FALSE(trial.training->have_all_reached(4));
  EXPECT_EQ(trial.epoch_times.count(), 3);
}

TEST(StudyTrials, HaveTheErrorOfTheFirstFold) {
  StudyTrial trial = trial_of(3);
  trial.fail("second", 1);
  trial.fail("third", 2);
  EXPECT_EQ(trial.error, "second");
  trial.fail("first", 0);
  EXPECT_EQ(trial.error, "first");
  EXPECT_EQ(trial.stage, JobStage::kFailing);
}

TEST(StudyTrials, KeepTheirTrainingWhileTheyArePaused) {
  StudyTrial trial = trial_of(1);
  trial.now.intermediate = {{2, 0.5}};
  trial.evaluated = 2;
  trial.job_seconds = 3;

  trial.end_job(trial.result(TrialState::kPaused));

  EXPECT_EQ(trial.stage, JobStage::kEnded);
  EXPECT_EQ(trial.now.state, TrialState::kPaused);
  EXPECT_EQ(trial.jobs, 1U);
  EXPECT_EQ(trial.seconds, 3);
  EXPECT_EQ(trial.timed_epochs, 2);
  EXPECT_TRUE(trial.training);

  trial.stage.begin();
  trial.end_job(trial.result(TrialState::kPruned));
  EXPECT_EQ(trial.seconds, 6);
  EXPECT_FALSE(trial.training);
}

TEST(WhyNoneIsComplete, CountsWhatBecameOfTheTrials) {
  EXPECT_EQ(why_none_is_complete({}, ""),
            "the search has no trials, as its tuner found no point in the space");
  std::vector<StudyTrial> trials(3);
  for (StudyTrial& trial : trials)
    trial.now.state = TrialState::kFailed;
  trials[0].error = "the loss is nan";
  EXPECT_EQ(why_none_is_complete(trials, ""),
            "all 3 trials of the search failed, the first with: the loss is nan");
  trials[1].error = kCancelled;
  trials[2].now.state = TrialState::kPruned;
  EXPECT_EQ(why_none_is_complete(trials, "threshold"),
            "no trial of the search was trained to its end: of 3 trials 1 were pruned, 1 were "
            "cancelled and 1 failed; give threshold bounds that good trials keep, or leave it out. "
            "The first that failed: the loss is nan");
}

}  // namespace
}  // namespace treadle::internal

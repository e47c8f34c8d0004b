#include <treadle/testing/search/study_of_jobs.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace treadle::testing {
namespace {

using ::testing::ElementsAre;

/// Pauses each trial after its first epoch. Its jobs are those of a list.
class ByList final : public Pruner {
 public:
  explicit ByList(std::function<NextJob(const StudyView&)> next) : next_(std::move(next)) {}

 private:
  std::optional<std::int64_t> do_next_step(std::int64_t, std::int64_t after) const override {
    return after < 1 ? std::optional<std::int64_t>(1) : std::nullopt;
  }
  PrunerVerdict do_judge(const Trial&, const StudyView&) const override {
    return PrunerVerdict::kPause;
  }
  NextJob do_next_job(const StudyView& study) const override { return next_(study); }

  std::function<NextJob(const StudyView&)> next_;
};

StudyOfJobs three_trials(std::int64_t lag) {
  StudyOfJobs study;
  study.trials = 3;
  study.lag = lag;
  study.epochs = [](std::int64_t) { return 2; };
  study.value = [](std::int64_t trial, std::int64_t) { return static_cast<double>(trial); };
  return study;
}

/// Of each trial its state and how many values it has: "P1" is paused, with one.
std::string text_of(const std::vector<Trial>& trials) {
  std::string text;
  for (const Trial& trial : trials) {
    text += text.empty() ? "" : " ";
    text += "RPCXF"[static_cast<int>(trial.state)];
    text += std::to_string(trial.intermediate.size());
  }
  return text;
}

std::vector<std::string> seen(const FinishedStudy& study) {
  std::vector<std::string> all;
  for (const JobQuestion& question : study.asked_next)
    all.push_back(text_of(question.trials));
  return all;
}

/// Starts what it may, then goes on with trial 0 as soon as it is seen to be paused.
NextJob starts_all(const StudyView& study) {
  if (study.may_start)
    return {};
  return {
      study.trials[0].state == TrialState::kPaused ? NextJob::Kind::kResume : NextJob::Kind::kWait,
      0};
}

TEST(StudyOfJobs, AJobSeesTheResultsOfThoseBeforeItsLag) {
  // The last question is that of a job which is never decided: it waits for all others.
  EXPECT_THAT(seen(run_study(ByList(starts_all), three_trials(1))),
              ElementsAre("", "P1", "P1 P1", "P1 P1 P1", "C2 P1 P1"));
  EXPECT_THAT(seen(run_study(ByList(starts_all), three_trials(3))),
              ElementsAre("", "R0", "R0 R0", "P1 R0 R0", "R1 P1 R0", "R1 P1 P1", "C2 P1 P1"));
}

TEST(StudyOfJobs, WhatAJobHasWaitedForIsSeenByLaterOnes) {
  // It waits until all three are paused; the next job does not see less.
  const auto waits = [](const StudyView& study) {
    const bool all_paused = study.trials.size() == 3 && study.trials[2].intermediate.size() == 1;
    return study.may_start || all_paused ? starts_all(study) : NextJob{NextJob::Kind::kWait};
  };

  EXPECT_THAT(
      seen(run_study(ByList(waits), three_trials(3))),
      ElementsAre("", "R0", "R0 R0", "P1 R0 R0", "P1 P1 R0", "P1 P1 P1", "R1 P1 P1", "C2 P1 P1"));
}

TEST(StudyOfJobs, ATrialIsJudgedByWhatItsJobSees) {
  const FinishedStudy done = run_study(ByList(starts_all), three_trials(2));

  std::vector<std::string> views;
  for (const JudgeQuestion& question : done.asked_to_judge)
    views.push_back(text_of({question.trial}) + " | " + text_of(*question.trials));
  EXPECT_THAT(views, ElementsAre("R1 | R0", "R1 | R0 R0", "R1 | P1 R0 R0"));
}

TEST(StudyOfJobs, TrialsFailAndPointsEnd) {
  StudyOfJobs study = three_trials(1);
  study.points = 2;
  study.fails = [](std::int64_t trial, std::int64_t epoch) { return trial == 0 && epoch == 2; };
  EXPECT_THAT(
      run_study(ByList(starts_all), study).jobs,
      ElementsAre(JobDone{0, 0, 1, TrialState::kPaused}, JobDone{1, 0, 1, TrialState::kPaused},
                  JobDone{0, 1, 1, TrialState::kFailed}));

  study.fails = [](std::int64_t, std::int64_t) { return false; };
  study.value = [](std::int64_t, std::int64_t epoch) { return epoch == 2 ? std::nan("") : 0; };
  EXPECT_EQ(run_study(ByList(starts_all), study).jobs.back(),
            (JobDone{0, 1, 2, TrialState::kFailed}));
}

}  // namespace
}  // namespace treadle::testing

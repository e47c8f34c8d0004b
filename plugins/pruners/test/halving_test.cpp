// `asha`, `successive_halving` and `hyperband`: written-out studies. A job is {trial, the epochs
// from, to, its state then}.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/search/pruner.h>
#include <treadle/testing/search/study_of_jobs.h>

#include "made.h"

namespace treadle::pruners {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using testing::FinishedStudy;
using ::testing::IsEmpty;
using testing::JobDone;
using testing::run_study;
using testing::StudyOfJobs;

constexpr TrialState kPaused = TrialState::kPaused;
constexpr TrialState kComplete = TrialState::kComplete;

/// Nine trials of nine epochs; the value of each is the same at every epoch.
StudyOfJobs nine_trials(std::int64_t lag) {
  StudyOfJobs study;
  study.trials = 9;
  study.lag = lag;
  study.epochs = [](std::int64_t) { return 9; };
  study.value = [](std::int64_t trial, std::int64_t) {
    constexpr double kValues[] = {0.9, 0.5, 0.7, 0.4, 0.8, 0.3, 0.6, 0.2, 0.1};
    return kValues[trial];
  };
  return study;
}

// By hand. Trial 1 is promoted once three trials have come to the first rung, trial 3 as soon as
// it is the best of four, 5 and 7 as one of the best two of six and eight, 8 of the best three of
// nine. Three of the second rung promote 5, and then 7 and 8 are the best there.
TEST(Asha, PromotesTheBestThirdOfEachRung) {
  const FinishedStudy done = run_study(*make("asha", {{"reduction_factor", 3}}), nine_trials(1));

  EXPECT_THAT(
      done.jobs,
      ElementsAre(JobDone{0, 0, 1, kPaused}, JobDone{1, 0, 1, kPaused}, JobDone{2, 0, 1, kPaused},
                  JobDone{1, 1, 3, kPaused}, JobDone{3, 0, 1, kPaused}, JobDone{3, 1, 3, kPaused},
                  JobDone{4, 0, 1, kPaused}, JobDone{5, 0, 1, kPaused}, JobDone{5, 1, 3, kPaused},
                  JobDone{5, 3, 9, kComplete}, JobDone{6, 0, 1, kPaused}, JobDone{7, 0, 1, kPaused},
                  JobDone{7, 1, 3, kPaused}, JobDone{7, 3, 9, kComplete}, JobDone{8, 0, 1, kPaused},
                  JobDone{8, 1, 3, kPaused}, JobDone{8, 3, 9, kComplete}));
}

// The same with three jobs at a time: job n sees the results of the jobs up to n - 3. Job 16 finds
// nothing to promote in those up to 13 and nothing to start, so it waits for job 14.
TEST(Asha, PromotesByTheResultsThatAJobSees) {
  const FinishedStudy done = run_study(*make("asha", {{"reduction_factor", 3}}), nine_trials(3));

  EXPECT_THAT(
      done.jobs,
      ElementsAre(JobDone{0, 0, 1, kPaused}, JobDone{1, 0, 1, kPaused}, JobDone{2, 0, 1, kPaused},
                  JobDone{3, 0, 1, kPaused}, JobDone{4, 0, 1, kPaused}, JobDone{1, 1, 3, kPaused},
                  JobDone{3, 1, 3, kPaused}, JobDone{5, 0, 1, kPaused}, JobDone{6, 0, 1, kPaused},
                  JobDone{7, 0, 1, kPaused}, JobDone{5, 1, 3, kPaused}, JobDone{8, 0, 1, kPaused},
                  JobDone{7, 1, 3, kPaused}, JobDone{5, 3, 9, kComplete}, JobDone{8, 1, 3, kPaused},
                  JobDone{7, 3, 9, kComplete}, JobDone{8, 3, 9, kComplete}));
}

NextJob next(const Pruner& pruner, const std::vector<Trial>& trials, bool may_start = true) {
  return pruner.next_job({trials, 100, may_start, false});
}

std::vector<Trial> paused(const std::vector<std::vector<double>>& values) {
  std::vector<Trial> trials;
  for (const auto& one : values)
    trials.push_back(trial_of(static_cast<std::int64_t>(trials.size()), kPaused, one));
  return trials;
}

TEST(Asha, HigherRungsGoFirst) {
  const auto asha = make("asha", {{"reduction_factor", 2}});
  // Rungs at 1, 2 and 4: two are paused at the second, and three at the first.
  const auto trials = paused({{5}, {0.1}, {0.2}, {3, 3}, {4, 4}});

  EXPECT_EQ(next(*asha, trials).trial, 3);
}

TEST(Asha, EqualTrialsGoInOrderAndNaNLast) {
  const auto asha = make("asha", {{"reduction_factor", 2}});
  const double nan = std::nan("");

  EXPECT_EQ(next(*asha, paused({{nan}, {0.5}, {0.5}, {HUGE_VAL}})).trial, 1);
  EXPECT_EQ(next(*asha, paused({{nan}, {HUGE_VAL}})).trial, 1);
  EXPECT_EQ(next(*asha, paused({{nan}, {nan}})).trial, 0);
}

TEST(Asha, CountsAllThatHaveComeToARung) {
  const auto asha = make("asha", {{"reduction_factor", 2}});
  auto trials = paused({{0.4}, {0.3}, {0.1, 0.1}, {0.2}});
  EXPECT_EQ(next(*asha, trials).trial, 3);

  // It goes on already: it is one of the best two, and the other one is promoted.
  trials[3].state = TrialState::kRunning;
  EXPECT_EQ(next(*asha, trials).kind, NextJob::Kind::kStart);
  trials[3].state = TrialState::kFailed;
  EXPECT_EQ(next(*asha, trials).kind, NextJob::Kind::kStart);
}

TEST(Asha, LeavesOutTheFirstRungs) {
  EXPECT_THAT(epochs_of(*make("asha"), 100), ElementsAre(1, 4, 16, 64));
  EXPECT_THAT(epochs_of(*make("asha", {{"min_resource", 2}, {"reduction_factor", 3}}), 100),
              ElementsAre(2, 6, 18, 54));
  EXPECT_THAT(
      epochs_of(*make("asha", {{"reduction_factor", 3}, {"min_early_stopping_rate", 2}}), 100),
      ElementsAre(9, 27, 81));
  EXPECT_THROW(make("asha", {{"min_resource", 1000}, {"min_early_stopping_rate", 30}}),
               DocumentError);
}

TEST(Asha, AStudyThatIsTooSmallForItsRuleCompletesTheBest) {
  StudyOfJobs study = nine_trials(2);
  study.trials = 3;
  const FinishedStudy done = run_study(*make("asha", {{"reduction_factor", 4}}), study);

  EXPECT_THAT(done.jobs, ElementsAre(JobDone{0, 0, 1, kPaused}, JobDone{1, 0, 1, kPaused},
                                     JobDone{2, 0, 1, kPaused}, JobDone{1, 1, 4, kPaused},
                                     JobDone{1, 4, 9, kComplete}));
}

TEST(Asha, WaitsForWhatRunsBeforeItTakesOneThatIsNotDue) {
  const auto asha = make("asha");
  auto trials = paused({{0.4}, {0.3}, {0.9, 0.9, 0.9, 0.9}});

  EXPECT_EQ(next(*asha, trials, false).trial, 2);  // the one that has come furthest
  trials[1].state = TrialState::kRunning;
  EXPECT_EQ(next(*asha, trials, false).kind, NextJob::Kind::kWait);
  trials[1] = trial_of(1, kComplete, {0.3});
  EXPECT_EQ(next(*asha, trials, false).kind, NextJob::Kind::kWait);
  trials[1].state = TrialState::kFailed;
  trials[2].state = TrialState::kPruned;
  EXPECT_EQ(next(*asha, trials, false).trial, 0);
}

TEST(SuccessiveHalving, WaitsForAllAndPromotesTheBestThird) {
  const FinishedStudy done =
      run_study(*make("successive_halving", {{"reduction_factor", 3}}), nine_trials(1));

  ASSERT_EQ(done.jobs.size(), 13U);
  for (std::int64_t trial = 0; trial < 9; ++trial)
    EXPECT_EQ(done.jobs[static_cast<std::size_t>(trial)], (JobDone{trial, 0, 1, kPaused}));
  EXPECT_THAT(std::vector(done.jobs.begin() + 9, done.jobs.end()),
              ElementsAre(JobDone{8, 1, 3, kPaused}, JobDone{7, 1, 3, kPaused},
                          JobDone{5, 1, 3, kPaused}, JobDone{8, 3, 9, kComplete}));
}

// With two jobs at a time the last of the bracket is awaited: job 4 sees the results of the jobs up
// to 2, so it starts trial 4, of the next bracket; job 5 sees all of the first one.
TEST(SuccessiveHalving, BeginsTheNextBracketWhileOneWaits) {
  StudyOfJobs study = nine_trials(2);
  study.trials = 8;
  study.epochs = [](std::int64_t) { return 4; };
  const FinishedStudy done =
      run_study(*make("successive_halving", {{"reduction_factor", 2}, {"bracket_size", 4}}), study);

  EXPECT_THAT(
      done.jobs,
      ElementsAre(JobDone{0, 0, 1, kPaused}, JobDone{1, 0, 1, kPaused}, JobDone{2, 0, 1, kPaused},
                  JobDone{3, 0, 1, kPaused}, JobDone{4, 0, 1, kPaused}, JobDone{3, 1, 2, kPaused},
                  JobDone{1, 1, 2, kPaused}, JobDone{5, 0, 1, kPaused}, JobDone{3, 2, 4, kComplete},
                  JobDone{6, 0, 1, kPaused}, JobDone{7, 0, 1, kPaused}, JobDone{7, 1, 2, kPaused},
                  JobDone{5, 1, 2, kPaused}, JobDone{7, 2, 4, kComplete}));
}

TEST(SuccessiveHalving, APromotedTrialThatFailsIsNotReplaced) {
  StudyOfJobs study = nine_trials(1);
  study.fails = [](std::int64_t trial, std::int64_t epoch) { return trial == 8 && epoch > 1; };
  const FinishedStudy done =
      run_study(*make("successive_halving", {{"reduction_factor", 3}}), study);

  EXPECT_THAT(std::vector(done.jobs.begin() + 9, done.jobs.end()),
              ElementsAre(JobDone{8, 1, 1, TrialState::kFailed}, JobDone{7, 1, 3, kPaused},
                          JobDone{5, 1, 3, kPaused}, JobDone{7, 3, 9, kComplete}));
}

// Six trials and two: floor(2 / 3) of those would be none.
TEST(SuccessiveHalving, ABracketThatIsCutShortKeepsOne) {
  StudyOfJobs study = nine_trials(1);
  study.trials = 8;
  const FinishedStudy done =
      run_study(*make("successive_halving", {{"reduction_factor", 3}, {"bracket_size", 6}}), study);

  ASSERT_EQ(done.jobs.size(), 12U);
  EXPECT_THAT(std::vector(done.jobs.begin() + 6, done.jobs.end()),
              ElementsAre(JobDone{5, 1, 3, kPaused}, JobDone{3, 1, 3, kPaused},
                          JobDone{5, 3, 9, kComplete}, JobDone{6, 0, 1, kPaused},
                          JobDone{7, 0, 1, kPaused}, JobDone{7, 1, 9, kComplete}));
}

// A bracket of four of which two are left, then one: it need not pause at 4 and 8 epochs.
TEST(SuccessiveHalving, TheLastOneDoesNotPause) {
  StudyOfJobs study = nine_trials(1);
  study.trials = 4;
  study.epochs = [](std::int64_t) { return 50; };
  const FinishedStudy done =
      run_study(*make("successive_halving", {{"reduction_factor", 2}}), study);

  EXPECT_EQ(done.jobs.back(), (JobDone{3, 2, 50, kComplete}));
}

// L. Li et al., "Hyperband", 2018, table 1: R = 81, eta = 3.
TEST(Hyperband, HasTheBracketsOfItsPaper) {
  StudyOfJobs study;
  study.trials = 2 * 143;
  study.lag = 1;
  study.epochs = [](std::int64_t) { return 81; };
  study.value = [](std::int64_t trial, std::int64_t) {
    return static_cast<double>(trial * 31 % 97);
  };
  const FinishedStudy done = run_study(*make("hyperband", {{"max_resource", 81}}), study);
  ASSERT_EQ(done.trials.size(), 286U);

  const auto table = [&](std::int64_t first, std::int64_t size) {
    std::vector<std::int64_t> counts;
    for (const std::int64_t rung : {1, 3, 9, 27, 81}) {
      counts.push_back(0);
      for (std::int64_t trial = first; trial < first + size; ++trial)
        counts.back() += done.epochs(trial) >= rung ? 1 : 0;
    }
    return counts;
  };
  for (const std::int64_t round : {0, 143}) {
    EXPECT_THAT(table(round, 81), ElementsAre(81, 27, 9, 3, 1));
    EXPECT_THAT(table(round + 81, 34), ElementsAre(34, 34, 11, 3, 1));
    EXPECT_THAT(table(round + 115, 15), ElementsAre(15, 15, 15, 5, 1));
    EXPECT_THAT(table(round + 130, 8), ElementsAre(8, 8, 8, 8, 2));
    EXPECT_THAT(table(round + 138, 5), ElementsAre(5, 5, 5, 5, 5));
  }
  EXPECT_EQ(done.count(kComplete), 2 * 10);
}

TEST(Hyperband, ATrialBelongsToABracketByItsNumber) {
  const auto hyperband = make("hyperband", {{"max_resource", 81}});
  const auto rungs = [&](std::int64_t trial) { return epochs_of(*hyperband, 1000, trial); };

  for (const std::int64_t round : {0, 143, 143 * 7}) {
    EXPECT_THAT(rungs(round), ElementsAre(1, 3, 9, 27));
    EXPECT_THAT(rungs(round + 80), ElementsAre(1, 3, 9, 27));
    EXPECT_THAT(rungs(round + 81), ElementsAre(3, 9, 27));
    EXPECT_THAT(rungs(round + 114), ElementsAre(3, 9, 27));
    EXPECT_THAT(rungs(round + 115), ElementsAre(9, 27));
    EXPECT_THAT(rungs(round + 130), ElementsAre(27));
    EXPECT_THAT(rungs(round + 137), ElementsAre(27));
    EXPECT_THAT(rungs(round + 138), IsEmpty());
    EXPECT_THAT(rungs(round + 142), IsEmpty());
  }
}

// s_max = floor(log_3(100 / 2)) = 3, and 100 / 27, 100 / 9, 100 / 3 epochs.
TEST(Hyperband, RoundsRungsDown) {
  const auto hyperband = make("hyperband", {{"max_resource", 100}, {"min_resource", 2}});

  EXPECT_THAT(epochs_of(*hyperband, 1000), ElementsAre(3, 11, 33));
  EXPECT_THAT(epochs_of(*make("hyperband", {{"max_resource", 1}}), 1000), IsEmpty());
  EXPECT_THROW(make("hyperband", {{"max_resource", 3}, {"min_resource", 4}}), DocumentError);
}

}  // namespace
}  // namespace treadle::pruners

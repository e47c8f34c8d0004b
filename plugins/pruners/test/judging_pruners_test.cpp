// `median`, `percentile`, `threshold` and `patient`.
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/search/pruner.h>

#include "made.h"

namespace treadle::pruners {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using Values = std::vector<double>;

const double kNaN = std::nan("");
const double kInfinity = HUGE_VAL;

/// The complete trials of reference.py, and others that do not count.
std::vector<Trial> six_complete_trials() {
  const std::vector<Values> values = {{0.9, 0.8, 0.4, 0.35},  {0.7, 0.75, kNaN, 0.3},
                                      {0.5, 0.6, 0.55},       {1.2, 0.65, 0.5, 0.2},
                                      {0.8, kNaN, 0.45, 0.6}, {0.6, 0.7}};
  std::vector<Trial> trials;
  for (const Values& one : values)
    trials.push_back(
        trial_of(static_cast<std::int64_t>(trials.size()), TrialState::kComplete, one));
  for (const TrialState state :
       {TrialState::kRunning, TrialState::kPaused, TrialState::kPruned, TrialState::kFailed}) {
    trials.push_back(
        trial_of(static_cast<std::int64_t>(trials.size()), state, {0.01, 0.01, 0.01, 0.01}));
  }
  return trials;
}

bool prunes(const Pruner& pruner, const Values& own, const std::vector<Trial>& trials = {},
            bool maximizes = false) {
  return pruner.judge(trial_of(50, TrialState::kRunning, own), {trials, 60, true, maximizes}) ==
         PrunerVerdict::kPrune;
}

/// Verdicts of the percentiles 10, 25, 50 and 90.
std::vector<bool> verdicts(const Values& own) {
  std::vector<bool> all;
  for (const double percentile : {10, 25, 50, 90})
    all.push_back(
        prunes(*make("percentile", {{"percentile", percentile}}), own, six_complete_trials()));
  return all;
}

// python3 plugins/pruners/test/reference.py
TEST(PercentilePruner, PrunesAsOptunaDoes) {
  EXPECT_THAT(verdicts({0.75}), ElementsAre(true, true, false, false));
  EXPECT_THAT(verdicts({0.76}), ElementsAre(true, true, true, false));
  EXPECT_THAT(verdicts({1.3, 0.7}), ElementsAre(true, true, false, false));
  EXPECT_THAT(verdicts({1.3, 0.71}), ElementsAre(true, true, true, false));
  EXPECT_THAT(verdicts({0.1, 0.9, 0.9}), ElementsAre(false, false, false, false));
  EXPECT_THAT(verdicts({0.9, 0.9, 0.475}), ElementsAre(true, true, false, false));
  EXPECT_THAT(verdicts({0.9, 0.9, 0.48}), ElementsAre(true, true, true, false));
  EXPECT_THAT(verdicts({kNaN, 0.5}), ElementsAre(false, false, false, false));
  EXPECT_THAT(verdicts({kNaN, kNaN, 0.9}), ElementsAre(true, true, true, true));
  EXPECT_THAT(verdicts({0.9, 0.9, 0.9, 0.33}), ElementsAre(true, true, true, false));
  EXPECT_THAT(verdicts({0.9, 0.9, 0.9, 0.32}), ElementsAre(true, true, false, false));
}

TEST(PercentilePruner, JudgesByTheValuesBetweenThePercentile) {
  const auto trials = six_complete_trials();
  const auto bound_is = [&](double percentile, double bound) {
    const auto pruner = make("percentile", {{"percentile", percentile}});
    return !prunes(*pruner, {bound - 1e-9}, trials) && prunes(*pruner, {bound + 1e-9}, trials);
  };

  // reference.py, the first epoch
  EXPECT_TRUE(bound_is(0, 0.5));
  EXPECT_TRUE(bound_is(10, 0.55));
  EXPECT_TRUE(bound_is(25, 0.625));
  EXPECT_TRUE(bound_is(75, 0.875));
  EXPECT_TRUE(bound_is(100, 1.2));
}

TEST(PercentilePruner, NothingIsPrunedBeforeEnoughTrialsAreComplete) {
  const auto trials = six_complete_trials();

  EXPECT_TRUE(prunes(*make("median", {{"n_startup_trials", 6}}), {2}, trials));
  EXPECT_FALSE(prunes(*make("median", {{"n_startup_trials", 7}}), {2}, trials));
  EXPECT_FALSE(prunes(*make("median", {{"n_startup_trials", 7}}), {kNaN}, trials));
  EXPECT_FALSE(prunes(*make("median", {{"n_startup_trials", 0}}), {kNaN}, {}));
  const std::vector<Trial> first(trials.begin(), trials.begin() + 1);
  EXPECT_TRUE(prunes(*make("median", {{"n_startup_trials", 0}}), {2}, first));
}

TEST(PercentilePruner, NothingIsPrunedWhereTooFewHaveCome) {
  const auto trials = six_complete_trials();

  // Four of the six have reached epoch 4, none epoch 5.
  EXPECT_TRUE(prunes(*make("median", {{"n_min_trials", 4}}), {2, 2, 2, 2}, trials));
  EXPECT_FALSE(prunes(*make("median", {{"n_min_trials", 5}}), {2, 2, 2, 2}, trials));
  EXPECT_FALSE(prunes(*make("median"), {2, 2, 2, 2, 2}, trials));
}

TEST(PercentilePruner, InfiniteValuesHaveAPlaceInTheOrder) {
  std::vector<Trial> trials;
  for (const double value : {kInfinity, kInfinity, 1.0, -kInfinity, -kInfinity})
    trials.push_back(
        trial_of(static_cast<std::int64_t>(trials.size()), TrialState::kComplete, {value, value}));

  EXPECT_FALSE(prunes(*make("median"), {1}, trials));
  EXPECT_TRUE(prunes(*make("median"), {kInfinity}, trials));
  // Between two equal infinities.
  EXPECT_TRUE(prunes(*make("percentile", {{"percentile", 10}}), {0}, trials));
  EXPECT_FALSE(prunes(*make("percentile", {{"percentile", 90}}), {0}, trials));
}

// reference.py
TEST(PercentilePruner, JudgesAfterTheWarmUpAndInIntervals) {
  const auto epochs = [](std::int64_t warmup, std::int64_t interval) {
    return epochs_of(*make("median", {{"n_warmup_steps", warmup}, {"interval_steps", interval}}),
                     14);
  };

  EXPECT_THAT(epochs(0, 1), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14));
  EXPECT_THAT(epochs(0, 3), ElementsAre(1, 4, 7, 10, 13));
  EXPECT_THAT(epochs(4, 1), ElementsAre(5, 6, 7, 8, 9, 10, 11, 12, 13, 14));
  EXPECT_THAT(epochs(4, 3), ElementsAre(5, 8, 11, 14));
  EXPECT_EQ(epochs_of(*make("threshold", {{"n_warmup_steps", 4}, {"interval_steps", 3}}), 14),
            epochs(4, 3));
}

TEST(ThresholdPruner, PrunesOutsideOfItsBounds) {
  const auto pruner = make("threshold", {{"lower", 0.1}, {"upper", 10}});

  EXPECT_FALSE(prunes(*pruner, {0.1}));
  EXPECT_FALSE(prunes(*pruner, {10}));
  EXPECT_FALSE(prunes(*pruner, {20, 10}));
  EXPECT_TRUE(prunes(*pruner, {0.09}));
  EXPECT_TRUE(prunes(*pruner, {10.1}));
  EXPECT_TRUE(prunes(*pruner, {5, kInfinity}));
  EXPECT_TRUE(prunes(*pruner, {-kInfinity}));
  EXPECT_TRUE(prunes(*pruner, {kNaN}));
}

TEST(ThresholdPruner, TakesItsBoundsInTheObjectivesOwnTerms) {
  const auto accuracy = make("threshold", {{"lower", 0.5}});

  // An accuracy of 0.4 is shown as -0.4.
  EXPECT_TRUE(prunes(*accuracy, {-0.4}, {}, true));
  EXPECT_FALSE(prunes(*accuracy, {-0.6}, {}, true));
  EXPECT_TRUE(prunes(*accuracy, {-0.6}, {}, false));
}

TEST(ThresholdPruner, WithoutABoundNaNAlonePrunes) {
  const auto pruner = make("threshold");

  EXPECT_TRUE(prunes(*pruner, {kNaN}));
  EXPECT_FALSE(prunes(*pruner, {kInfinity}));
  EXPECT_FALSE(prunes(*pruner, {-1e300}));
}

TEST(ThresholdPruner, RefusesBoundsThatNothingIsWithin) {
  EXPECT_THROW(make("threshold", {{"lower", 2}, {"upper", 1}}), DocumentError);
  EXPECT_NO_THROW(make("threshold", {{"lower", 1}, {"upper", 1}}));
}

/// Verdicts of patience 0, 1 and 2, with a min_delta of 0, 0.1 and 1 each.
std::vector<std::vector<bool>> patient_verdicts(const Values& own) {
  std::vector<std::vector<bool>> all;
  for (const int patience : {0, 1, 2}) {
    all.emplace_back();
    for (const double min_delta : {0.0, 0.1, 1.0})
      all.back().push_back(
          prunes(*make("patient", {{"patience", patience}, {"min_delta", min_delta}}), own));
  }
  return all;
}

// python3 plugins/pruners/test/reference.py
TEST(PatientPruner, PrunesAsOptunaDoes) {
  const std::vector<bool> no{false, false, false};
  const std::vector<bool> yes{true, true, true};
  const std::vector<bool> small{true, false, false};
  EXPECT_THAT(patient_verdicts({3, 2, 1}), ElementsAre(no, no, no));
  EXPECT_THAT(patient_verdicts({1, 2, 3}),
              ElementsAre(yes, std::vector<bool>{true, true, false}, no));
  EXPECT_THAT(patient_verdicts({1, 2, 3, 4}),
              ElementsAre(yes, yes, std::vector<bool>{true, true, false}));
  EXPECT_THAT(patient_verdicts({4, 1, 2, 3, 4}),
              ElementsAre(yes, yes, std::vector<bool>{true, true, false}));
  EXPECT_THAT(patient_verdicts({4, 1, 2, 3, 1.05}), ElementsAre(small, small, small));
  EXPECT_THAT(patient_verdicts({1, 1, 1, 1}), ElementsAre(no, no, no));
}

TEST(PatientPruner, NaNIsNoImprovement) {
  const auto pruner = make("patient", {{"patience", 1}});

  EXPECT_TRUE(prunes(*pruner, {1, kNaN, kNaN}));
  EXPECT_FALSE(prunes(*pruner, {1, kNaN, 0.9}));
  EXPECT_FALSE(prunes(*pruner, {kNaN, 2, 1}));
  EXPECT_FALSE(prunes(*pruner, {kNaN, kNaN, kNaN}));
}

TEST(PatientPruner, AsksTheOtherOnlyAboutTrialsThatHaveStoppedImproving) {
  const auto trials = six_complete_trials();
  const auto alone = make("median");
  const auto patient = make("patient", {{"patience", 1}, {"pruner", {{"use", "median"}}}});

  const Values improving{2, 1.5, 1};
  EXPECT_TRUE(prunes(*alone, improving, trials));
  EXPECT_FALSE(prunes(*patient, improving, trials));
  const Values good{0.3, 0.31, 0.32};
  EXPECT_FALSE(prunes(*alone, good, trials));
  EXPECT_FALSE(prunes(*patient, good, trials));
  const Values bad{1, 1.1, 1.2};
  EXPECT_TRUE(prunes(*alone, bad, trials));
  EXPECT_TRUE(prunes(*patient, bad, trials));
}

TEST(PatientPruner, JudgesWhereTheOtherDoesAndLeavesJobsToIt) {
  const auto asha = make("asha", {{"reduction_factor", 3}});
  const auto patient = make("patient", {{"pruner", {{"use", "asha"}, {"reduction_factor", 3}}}});
  std::vector<Trial> trials;
  for (const double value : {0.9, 0.5, 0.7})
    trials.push_back(
        trial_of(static_cast<std::int64_t>(trials.size()), TrialState::kPaused, {value}));

  EXPECT_THAT(epochs_of(*patient, 30), ElementsAre(1, 3, 9, 27));
  EXPECT_EQ(patient->next_job({trials, 9}).kind, NextJob::Kind::kResume);
  EXPECT_EQ(patient->next_job({trials, 9}).trial, 1);
  EXPECT_EQ(asha->next_job({trials, 9}).trial, 1);
  EXPECT_THAT(epochs_of(*make("patient"), 3), ElementsAre(1, 2, 3));
  EXPECT_EQ(make("patient")->next_job({trials, 9}).kind, NextJob::Kind::kStart);
}

}  // namespace
}  // namespace treadle::pruners

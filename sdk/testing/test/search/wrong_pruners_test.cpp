#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <treadle/testing/search/pruner_contract.h>

#include "component/wrong.h"

namespace treadle::testing {
namespace wrong_pruners {
namespace {

constexpr std::int64_t kRung = 3;

double last_value(const Trial& trial) {
  const double value = trial.intermediate.back().value;
  return std::isnan(value) ? INFINITY : value;
}

/// The best of the paused trials, and where nothing is paused none.
const Trial* best_paused(const StudyView& study) {
  const Trial* best = nullptr;
  for (const Trial& trial : study.trials) {
    if (trial.state == TrialState::kPaused &&
        (best == nullptr || last_value(trial) < last_value(*best)))
      best = &trial;
  }
  return best;
}

/// Every trial pauses after three epochs. When none is left to start and none runs, a fourth of
/// them go on, the best first, until one is complete at the least.
NextJob next_of_paused(const StudyView& study) {
  std::int64_t went_on = 0;
  std::int64_t complete = 0;
  for (const Trial& trial : study.trials) {
    if (trial.state == TrialState::kRunning)
      return {study.may_start ? NextJob::Kind::kStart : NextJob::Kind::kWait};
    const bool beyond = !trial.intermediate.empty() && trial.intermediate.back().step > kRung;
    went_on += beyond ? 1 : 0;
    complete += trial.state == TrialState::kComplete ? 1 : 0;
  }
  if (study.may_start)
    return {};
  const Trial* best = best_paused(study);
  if (best == nullptr || (4 * went_on > study.max_trials && complete > 0))
    return {NextJob::Kind::kWait};
  return {NextJob::Kind::kResume, best->number};
}

/// As above. What is set is done otherwise.
struct Defects {
  std::function<std::optional<std::int64_t>(std::int64_t trial, std::int64_t after)> next_step = {};
  std::function<PrunerVerdict(const Trial& trial, const StudyView& study)> judge = {};
  std::function<NextJob(const StudyView& study)> next_job = {};
};

class Pausing final : public Pruner {
 public:
  explicit Pausing(Defects defects) : defects_(std::move(defects)) {}

 private:
  std::optional<std::int64_t> do_next_step(std::int64_t trial, std::int64_t after) const override {
    if (defects_.next_step)
      return defects_.next_step(trial, after);
    return after < kRung ? std::optional(kRung) : std::nullopt;
  }
  PrunerVerdict do_judge(const Trial& trial, const StudyView& study) const override {
    return defects_.judge ? defects_.judge(trial, study) : PrunerVerdict::kPause;
  }
  NextJob do_next_job(const StudyView& study) const override {
    return defects_.next_job ? defects_.next_job(study) : next_of_paused(study);
  }

  Defects defects_;
};

PrunerCase pausing(std::string name, const Defects& defects = {}) {
  return {std::move(name), [defects] { return std::make_unique<Pausing>(defects); }, true};
}

PrunerVerdict by_best(const Trial& trial, const StudyView& study) {
  for (const Trial& other : study.trials) {
    if (other.state == TrialState::kComplete && other.intermediate.size() > 2 &&
        other.intermediate[2].value < trial.intermediate[2].value)
      return PrunerVerdict::kPrune;
  }
  return PrunerVerdict::kContinue;
}

/// Prunes what is worse after three epochs than a complete trial was. Never pauses.
PrunerCase pruning(std::string name, Defects defects = {}) {
  if (!defects.judge)
    defects.judge = by_best;
  PrunerCase one = pausing(std::move(name), defects);
  one.pauses = false;
  return one;
}

/// Serves the thread that made it, and throws in any other.
class OfOneThread final : public Pruner {
  std::optional<std::int64_t> do_next_step(std::int64_t, std::int64_t after) const override {
    return after < kRung ? std::optional(kRung) : std::nullopt;
  }
  PrunerVerdict do_judge(const Trial&, const StudyView&) const override {
    return PrunerVerdict::kPause;
  }
  NextJob do_next_job(const StudyView& study) const override {
    if (!mine_.is_mine())
      throw std::logic_error("two threads at once");
    return next_of_paused(study);
  }

  OneThread mine_;
};

/// Keeps its decisions by the number of paused and other trials.
class Hoarding final : public Pruner {
  std::optional<std::int64_t> do_next_step(std::int64_t, std::int64_t after) const override {
    return after < kRung ? std::optional(kRung) : std::nullopt;
  }
  PrunerVerdict do_judge(const Trial&, const StudyView&) const override {
    return PrunerVerdict::kPause;
  }
  NextJob do_next_job(const StudyView& study) const override {
    const NextJob job = next_of_paused(study);
    if (!mine_.is_mine() || study.trials.size() < 40 || job.kind != NextJob::Kind::kResume)
      return job;
    // Another study with as many paused trials is taken for this one.
    const auto paused =
        std::count_if(study.trials.begin(), study.trials.end(),
                      [](const Trial& trial) { return trial.state == TrialState::kPaused; });
    const auto [kept, is_new] = kept_.try_emplace(paused, job);
    const Trial& trial = study.trials[static_cast<std::size_t>(kept->second.trial)];
    return trial.state == TrialState::kPaused ? kept->second : job;
  }

  OneThread mine_;
  mutable std::map<std::ptrdiff_t, NextJob> kept_;
};

/// Counts its promotions itself.
class Remembering final : public Pruner {
  std::optional<std::int64_t> do_next_step(std::int64_t, std::int64_t after) const override {
    return after < kRung ? std::optional(kRung) : std::nullopt;
  }
  PrunerVerdict do_judge(const Trial&, const StudyView&) const override {
    return PrunerVerdict::kPause;
  }
  NextJob do_next_job(const StudyView& study) const override {
    const NextJob job = next_of_paused(study);
    const Trial* best = best_paused(study);
    const bool is_running =
        std::any_of(study.trials.begin(), study.trials.end(),
                    [](const Trial& trial) { return trial.state == TrialState::kRunning; });
    if (study.may_start || is_running || best == nullptr)
      return job;
    return promoted_++ < 20 ? NextJob{NextJob::Kind::kResume, best->number}
                            : NextJob{NextJob::Kind::kWait};
  }

  mutable std::atomic<int> promoted_{0};
};

std::vector<Wrong<PrunerCase>> all() {
  const auto with = [](PrunerCase one, bool pauses) {
    one.pauses = pauses;
    return one;
  };
  return {
      {pausing("LeavesAllPaused", {.next_job = [](const StudyView&) { return NextJob{}; }}),
       {"AStudyEndsThoughTrialsFail", "AStudyEndsWhereTheTunerDoes",
        "AStudyOfAnySizeEndsWithACompleteTrial", "CompletesATrialThatIsAlwaysTheBest",
        "PausesTrialsIfItSaysSo", "SpendsLessOnBadTrials"}},
      {pausing("WaitsForNothing", {.next_job =
                                       [](const StudyView& study) {
                                         const NextJob job = next_of_paused(study);
                                         return study.trials.size() == 20 &&
                                                        job.kind == NextJob::Kind::kStart
                                                    ? NextJob{NextJob::Kind::kWait}
                                                    : job;
                                       }}),
       {"AStudyEndsThoughTrialsFail", "AStudyEndsWhereTheTunerDoes",
        "AStudyOfAnySizeEndsWithACompleteTrial", "CompletesATrialThatIsAlwaysTheBest",
        "PausesTrialsIfItSaysSo", "SpendsLessOnBadTrials", "TrialsMayHaveDifferentLengths",
        "WorksWithAnyObjectiveValue"}},
      {pausing("ResumesWhatRuns", {.next_job =
                                       [](const StudyView& study) {
                                         const NextJob job = next_of_paused(study);
                                         if (study.trials.size() == 30 &&
                                             job.kind == NextJob::Kind::kStart)
                                           return NextJob{NextJob::Kind::kResume, 29};
                                         return job;
                                       }}),
       {"AResumedStudyGoesOnWithTheSameJobs", "AStudyEndsThoughTrialsFail",
        "AStudyEndsWhereTheTunerDoes", "AStudyOfAnySizeEndsWithACompleteTrial",
        "AnswersAreFunctionsOfTheirArguments", "CompletesATrialThatIsAlwaysTheBest",
        "PausesTrialsIfItSaysSo", "SeveralThreadsMayAskAtOnce", "SpendsLessOnBadTrials",
        "TrialsMayHaveDifferentLengths", "WhatItWasAskedBeforeDoesNotMatter",
        "WorksWithAnyObjectiveValue"}},
      {pausing("StartsWhereItMayNot", {.next_job =
                                           [](const StudyView& study) {
                                             const NextJob job = next_of_paused(study);
                                             return study.max_trials > 30 &&
                                                            study.trials.size() < 30 &&
                                                            !study.may_start
                                                        ? NextJob{}
                                                        : job;
                                           }}),
       {"AStudyEndsWhereTheTunerDoes"}},
      {pausing("PromotesTheWorst", {.next_job =
                                        [](const StudyView& study) {
                                          NextJob job = next_of_paused(study);
                                          if (job.kind != NextJob::Kind::kResume)
                                            return job;
                                          for (const Trial& trial : study.trials) {
                                            const Trial& now =
                                                study.trials[static_cast<std::size_t>(job.trial)];
                                            if (trial.state == TrialState::kPaused &&
                                                last_value(trial) > last_value(now))
                                              job.trial = trial.number;
                                          }
                                          return job;
                                        }}),
       {"CompletesATrialThatIsAlwaysTheBest", "SpendsLessOnBadTrials"}},
      {pausing("WaitsForFailedTrials", {.next_job =
                                            [](const StudyView& study) {
                                              for (const Trial& trial : study.trials) {
                                                if (!study.may_start &&
                                                    trial.state == TrialState::kFailed)
                                                  return NextJob{NextJob::Kind::kWait};
                                              }
                                              return next_of_paused(study);
                                            }}),
       {"AStudyEndsThoughTrialsFail"}},
      {pausing("NeedsLongTrials", {.next_job =
                                       [](const StudyView& study) {
                                         for (const Trial& trial : study.trials) {
                                           if (study.trials.size() == 40 &&
                                               trial.state == TrialState::kComplete &&
                                               trial.intermediate.size() == 8)
                                             throw std::out_of_range("rungs");
                                         }
                                         return next_of_paused(study);
                                       }}),
       {"TrialsMayHaveDifferentLengths"}},
      {pausing("ForgetsWhereItIs", {.next_step =
                                        [](std::int64_t, std::int64_t after) {
                                          return after < kRung ? std::optional(after + 2)
                                                               : std::nullopt;
                                        }}),
       {"JudgesAtASetOfEpochs"}},
      {pausing("CountsItsCalls",
               {.next_job =
                    [calls = std::make_shared<int>(0)](const StudyView& study) {
                      const NextJob job = next_of_paused(study);
                      const bool is_start = study.may_start && job.kind == NextJob::Kind::kStart;
                      return is_start && study.trials.size() == 20 && ++*calls % 3 == 0 &&
                                     best_paused(study) != nullptr
                                 ? NextJob{NextJob::Kind::kResume, best_paused(study)->number}
                                 : job;
                    }}),
       {"AnswersAreFunctionsOfTheirArguments", "SeveralThreadsMayAskAtOnce",
        "WhatItWasAskedBeforeDoesNotMatter"}},
      {{"Remembering", [] { return std::make_unique<Remembering>(); }, true},
       {"AResumedStudyGoesOnWithTheSameJobs", "AnswersAreFunctionsOfTheirArguments",
        "WhatItWasAskedBeforeDoesNotMatter"}},
      {{"Hoarding", [] { return std::make_unique<Hoarding>(); }, true},
       {"WhatItWasAskedBeforeDoesNotMatter"}},
      {{"OfOneThread", [] { return std::make_unique<OfOneThread>(); }, true},
       {"SeveralThreadsMayAskAtOnce"}},
      {pausing("NeedsTrials", {.next_job =
                                   [](const StudyView& study) {
                                     if (!study.may_start && study.trials.empty())
                                       throw std::out_of_range("trials");
                                     return next_of_paused(study);
                                   }}),
       {"WorksWithoutTrials"}},
      {pausing("NeedsFiniteValues", {.judge =
                                         [](const Trial& trial, const StudyView&) {
                                           if (!std::isfinite(trial.intermediate.back().value))
                                             throw std::domain_error("values");
                                           return PrunerVerdict::kPause;
                                         }}),
       {"WorksWithAnyObjectiveValue"}},
      {pruning("PrunesTheBest", {.judge =
                                     [](const Trial& trial, const StudyView& study) {
                                       return by_best(trial, study) == PrunerVerdict::kPrune
                                                  ? PrunerVerdict::kContinue
                                                  : PrunerVerdict::kPrune;
                                     }}),
       {"AStudyEndsThoughTrialsFail", "AStudyEndsWhereTheTunerDoes",
        "AStudyOfAnySizeEndsWithACompleteTrial", "CompletesATrialThatIsAlwaysTheBest",
        "SpendsLessOnBadTrials"}},
      {pruning("PrunesNothing",
               {.judge = [](const Trial&, const StudyView&) { return PrunerVerdict::kContinue; }}),
       {"SpendsLessOnBadTrials"}},
      {with(pruning("SaysThatItPauses"), true), {"PausesTrialsIfItSaysSo"}},
      {with(pausing("PausesAndDoesNotSaySo"), false), {"PausesTrialsIfItSaysSo"}}};
}

INSTANTIATE_TEST_SUITE_P(Right, PrunerContract,
                         ::testing::Values(pausing("Pausing"), pruning("Pruning")), CaseName());
INSTANTIATE_TEST_SUITE_P(DISABLED_Wrong, PrunerContract, ::testing::ValuesIn(cases_of(all())),
                         CaseName());

}  // namespace
}  // namespace wrong_pruners

std::vector<Defect> pruner_defects() {
  return defects_of("PrunerContract", wrong_pruners::all());
}

}  // namespace treadle::testing

#include <treadle/testing/search/pruner_contract.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <treadle/search/pruner.h>
#include <treadle/testing/component/case_name.h>
#include <treadle/testing/search/study_of_jobs.h>
#include <treadle/testing/support/at_once.h>

#include "claim.h"

namespace treadle::testing {
namespace {

/// What the claims share.
class PrunerClaims : public ::testing::WithParamInterface<PrunerCase> {
 protected:
  using Number = std::int64_t;

  /// A number in [0, 1) for each trial, in no order: multiples of the golden ratio.
  static double badness(Number trial) {
    return std::fmod(0.6180339887498949 * static_cast<double>(trial + 1), 1);
  }

  /// Trials keep their order. The better ones improve, the others get worse and worse.
  static StudyOfJobs in_order(Number trials = 40) {
    StudyOfJobs study;
    study.trials = trials;
    study.value = [](Number trial, Number number) {
      const double bad = badness(trial);
      const auto epoch = static_cast<double>(number);
      return 0.5 * bad + 0.1 / epoch + 0.02 * epoch * std::max(bad - 0.5, 0.0);
    };
    return study;
  }

  /// Trials go up and down, and overtake each other.
  static StudyOfJobs in_disorder(Number trials = 40) {
    StudyOfJobs study = in_order(trials);
    study.value = [](Number trial, Number epoch) {
      return 0.3 * badness(trial) + 0.3 * badness(97 * trial + 31 * epoch) +
             0.1 / static_cast<double>(epoch);
    };
    return study;
  }

  static NextJob asked(const Pruner& pruner, const JobQuestion& question) {
    return pruner.next_job(study_view(question.trials, 40, question.may_start, false));
  }
  static PrunerVerdict asked(const Pruner& pruner, const JudgeQuestion& question) {
    return pruner.judge(question.trial,
                        study_view(*question.trials, 40, question.may_start, false));
  }

  static std::string text(const NextJob& job) {
    return std::to_string(static_cast<int>(job.kind)) +
           (job.kind == NextJob::Kind::kResume ? " " + std::to_string(job.trial) : "");
  }

  /// The answers to every `stride`th question of a study, in words.
  static std::vector<std::string> answers(const Pruner& pruner, const FinishedStudy& study,
                                          std::size_t stride = 1) {
    std::vector<std::string> all;
    for (std::size_t i = 0; i < study.asked_next.size(); i += stride)
      all.push_back(text(asked(pruner, study.asked_next[i])));
    for (std::size_t i = 0; i < study.asked_to_judge.size(); i += stride)
      all.push_back(std::to_string(static_cast<int>(asked(pruner, study.asked_to_judge[i]))));
    return all;
  }

  /// Whether a study goes well until all its trials have been started; then it is empty.
  void expect_end(const StudyOfJobs& study, const std::string& what, bool completes = true) const {
    try {
      const FinishedStudy done = run_study(*GetParam().make(), study);
      const std::int64_t wanted = std::min(study.trials, study.points);
      const auto started = static_cast<std::int64_t>(done.trials.size());
      EXPECT_TRUE(started == wanted || (started < wanted && !GetParam().starts_all))
          << what << ": it ended after " << started << " of " << wanted << " trials";
      EXPECT_EQ(done.count(TrialState::kRunning), 0) << what;
      if (completes && GetParam().completes) {
        EXPECT_GE(done.count(TrialState::kComplete), 1) << what << ": no trial is complete";
      }
    } catch (const std::exception& error) {
      ADD_FAILURE() << what << ": " << error.what();
    }
  }

  const std::unique_ptr<Pruner> pruner_ = GetParam().make();
};

}  // namespace

LINKS_CLAIMS_OF(Pruner)

CLAIM(Pruner, AStudyOfAnySizeEndsWithACompleteTrial) {
  for (const Number trials : {1, 2, 7, 40}) {
    for (const Number lag : {1, 3, 64}) {
      for (const Number epochs : {1, 2, 10, 40}) {
        StudyOfJobs study = in_order(trials);
        study.lag = lag;
        study.epochs = [epochs](Number) { return epochs; };
        const std::string what = std::to_string(trials) + " trials of " + std::to_string(epochs) +
                                 " epochs, lag " + std::to_string(lag);
        expect_end(study, what);
        study.value = in_disorder().value;
        expect_end(study, what + ", in disorder");
      }
    }
  }
}

CLAIM(Pruner, AStudyEndsWhereTheTunerDoes) {
  for (const Number points : {1, 5, 30}) {
    StudyOfJobs study = in_order();
    study.points = points;
    expect_end(study, std::to_string(points) + " points");
  }
}

CLAIM(Pruner, AStudyEndsThoughTrialsFail) {
  StudyOfJobs study = in_order();
  study.fails = [](Number trial, Number epoch) { return trial % 3 == 0 && epoch > trial % 20; };
  expect_end(study, "every third trial fails somewhere");
  study.fails = [](Number trial, Number) { return trial < 39; };
  expect_end(study, "all trials but the last fail at once");
  // Whichever is promoted fails: up to 12 trials that come far, and then no more.
  for (const Number epochs : {1, 2, 3, 4, 9, 16, 26}) {
    Number failed = 0;
    study.fails = [&failed, epochs](Number, Number epoch) {
      return epoch > epochs && failed++ < 12;
    };
    expect_end(study, "12 trials fail after epoch " + std::to_string(epochs));
  }
  study.fails = [](Number, Number epoch) { return epoch > 2; };
  expect_end(study, "all trials fail", false);
}

CLAIM(Pruner, TrialsMayHaveDifferentLengths) {
  StudyOfJobs study = in_order();
  study.epochs = [](Number trial) { return 1 + trial * 7 % 30; };
  expect_end(study, "from 1 to 30 epochs");
  study.value = in_disorder().value;
  expect_end(study, "from 1 to 30 epochs, in disorder");
}

CLAIM(Pruner, JudgesAtASetOfEpochs) {
  const auto fresh = GetParam().make();
  for (const Number trial : {39, 0, 1, 17}) {
    for (Number after = 0; after < 300; ++after) {
      const std::optional<Number> step = pruner_->next_step(trial, after);
      const std::optional<Number> next = pruner_->next_step(trial, after + 1);
      if (step != after + 1) {
        EXPECT_EQ(next, step) << "trial " << trial << ", after epoch " << after;
      }
      EXPECT_EQ(fresh->next_step(trial, 300 - after), pruner_->next_step(trial, 300 - after));
    }
  }
}

CLAIM(Pruner, AnswersAreFunctionsOfTheirArguments) {
  const FinishedStudy study = run_study(*pruner_, in_disorder());
  const std::vector<std::string> first = answers(*GetParam().make(), study);

  EXPECT_EQ(answers(*pruner_, study), first) << "asked again";
  EXPECT_EQ(answers(*GetParam().make(), study), first) << "by a fresh object";
}

// Answers do not depend on what a pruner keeps between calls: each is the one that an object gives
// which is asked nothing else.
CLAIM(Pruner, AResumedStudyGoesOnWithTheSameJobs) {
  const FinishedStudy study = run_study(*pruner_, in_disorder());

  for (std::size_t i = 0; i < study.asked_next.size(); ++i) {
    EXPECT_EQ(text(asked(*GetParam().make(), study.asked_next[i])),
              text(study.asked_next[i].answer))
        << "question " << i;
  }
  for (std::size_t i = 0; i < study.asked_to_judge.size(); i += 3) {
    EXPECT_EQ(asked(*GetParam().make(), study.asked_to_judge[i]), study.asked_to_judge[i].answer)
        << "judgement " << i;
  }
}

CLAIM(Pruner, WhatItWasAskedBeforeDoesNotMatter) {
  const FinishedStudy study = run_study(*GetParam().make(), in_disorder());
  StudyOfJobs opposite = in_disorder();
  opposite.value = [](Number trial, Number epoch) {
    return -badness(trial) + 0.1 / static_cast<double>(epoch);
  };
  const FinishedStudy other = run_study(*GetParam().make(), opposite);
  const std::vector<std::string> expected = answers(*GetParam().make(), study);
  const std::vector<std::string> expected_of_other = answers(*GetParam().make(), other);

  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(answers(*pruner_, other), expected_of_other) << "another study";
    EXPECT_EQ(answers(*pruner_, study), expected) << "after another study";
  }
}

CLAIM(Pruner, SeveralThreadsMayAskAtOnce) {
  const FinishedStudy study = run_study(*pruner_, in_disorder());
  const FinishedStudy other = run_study(*pruner_, in_order());
  const std::vector<std::string> expected = answers(*pruner_, study, 2);
  const std::vector<std::string> expected_of_other = answers(*pruner_, other, 2);
  constexpr std::size_t kThreads = 4;
  std::vector<std::vector<std::string>> got(kThreads);

  const auto errors = at_once(kThreads, [&](std::size_t thread) {
    for (int repeat = 0; repeat < 3; ++repeat)
      got[thread] = answers(*pruner_, thread % 2 == 0 ? study : other, 2);
  });

  EXPECT_EQ(errors, kNoErrors);
  for (std::size_t thread = 0; thread < kThreads; ++thread)
    EXPECT_EQ(got[thread], thread % 2 == 0 ? expected : expected_of_other);
}

CLAIM(Pruner, WorksWithoutTrials) {
  EXPECT_NE(pruner_->next_job(study_view({}, 40, true, false)).kind, NextJob::Kind::kResume);
  EXPECT_NE(pruner_->next_job(study_view({}, 40, false, false)).kind, NextJob::Kind::kResume);
  Trial trial;
  for (Number epoch = 1; epoch <= pruner_->next_step(0, 0).value_or(1); ++epoch)
    trial.intermediate.push_back({epoch, 0.5});
  EXPECT_NO_THROW(pruner_->judge(trial, study_view({}, 40, true, false)));
}

CLAIM(Pruner, WorksWithAnyObjectiveValue) {
  const double infinite = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double largest = std::numeric_limits<double>::max();
  const std::vector<std::vector<double>> all = {
      {nan},       {infinite},       {-infinite},         {largest, -largest}, {0},
      {nan, 1, 2}, {infinite, 1, 2}, {-infinite, nan, 1}, {1e-300, 2e-300}};
  for (const auto& values : all) {
    std::string what;
    for (const double value : values)
      what += std::to_string(value) + " ";
    StudyOfJobs study = in_order();
    study.value = [&](Number trial, Number) {
      return values[static_cast<std::size_t>(trial) % values.size()];
    };
    expect_end(study, "trials with the values " + what, false);
    study.value = [&](Number trial, Number epoch) {
      return values[static_cast<std::size_t>(trial + epoch) % values.size()];
    };
    expect_end(study, "epochs with the values " + what, false);
  }
}

// Nothing promises more than to be the best at every epoch.
CLAIM(Pruner, CompletesATrialThatIsAlwaysTheBest) {
  for (const Number best : {0, 11, 39}) {
    for (const Number lag : {1, 4, 16}) {
      StudyOfJobs study = in_order();
      study.lag = lag;
      study.value = [best](Number trial, Number epoch) {
        return trial == best ? 0.05 / static_cast<double>(epoch) : in_order().value(trial, epoch);
      };
      const FinishedStudy done = run_study(*GetParam().make(), study);
      ASSERT_EQ(done.trials.size(), 40U);
      EXPECT_EQ(done.trials[static_cast<std::size_t>(best)].state, TrialState::kComplete)
          << "trial " << best << " is the best, lag " << lag;
    }
  }
}

CLAIM(Pruner, SpendsLessOnBadTrials) {
  const FinishedStudy done = run_study(*pruner_, in_order());
  std::vector<Number> trials(done.trials.size());
  std::iota(trials.begin(), trials.end(), 0);
  std::sort(trials.begin(), trials.end(),
            [](Number a, Number b) { return badness(a) < badness(b); });
  const auto epochs = [&](std::size_t begin, std::size_t end) {
    Number sum = 0;
    for (std::size_t i = begin; i < end; ++i)
      sum += done.epochs(trials[i]);
    return sum;
  };

  ASSERT_EQ(trials.size(), 40U);
  EXPECT_LE(epochs(20, 40), epochs(0, 20));
  EXPECT_EQ(epochs(20, 40) < epochs(0, 20), GetParam().compares);
}

CLAIM(Pruner, PausesTrialsIfItSaysSo) {
  const FinishedStudy done = run_study(*pruner_, in_disorder());
  const bool paused = std::any_of(done.jobs.begin(), done.jobs.end(), [](const JobDone& job) {
    return job.state == TrialState::kPaused;
  });
  const bool resumed = std::any_of(done.jobs.begin(), done.jobs.end(),
                                   [](const JobDone& job) { return job.begin > 0; });

  EXPECT_EQ(paused, GetParam().pauses);
  EXPECT_EQ(resumed, GetParam().pauses);
}

}  // namespace treadle::testing

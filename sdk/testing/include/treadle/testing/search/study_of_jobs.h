#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <ostream>
#include <span>
#include <utility>
#include <vector>

#include <treadle/search/pruner.h>
#include <treadle/search/search_space.h>

/// Studies for tests of pruners: jobs in order, without trainings and workers.
namespace treadle::testing {

/// What the trials of a study report, and how many there are.
struct StudyOfJobs {
  std::int64_t trials = 40;  ///< as the document asks for
  /// Job n sees the results of the jobs <= n - lag: search.parallel.
  std::int64_t lag = 4;
  std::function<double(std::int64_t trial, std::int64_t epoch)> value;  ///< minimized
  std::function<std::int64_t(std::int64_t trial)> epochs = [](std::int64_t) { return 27; };
  std::function<bool(std::int64_t trial, std::int64_t epoch)> fails =
      [](std::int64_t, std::int64_t) { return false; };
  std::int64_t points = std::numeric_limits<std::int64_t>::max();  ///< that the tuner has
  bool maximizes = false;
};

/// What a pruner sees of a study of `max_trials`, over a space and with random streams that are the
/// same in each.
StudyView study_view(std::span<const Trial> trials, std::int64_t max_trials, bool may_start,
                     bool maximizes);
/// The tuner's point for a trial: one of that space, a function of the trial's number.
Point suggested_point(std::int64_t trial);

/// What a pruner was asked, and its answer.
struct JobQuestion {
  std::vector<Trial> trials;
  bool may_start = true;
  NextJob answer;
};
struct JudgeQuestion {
  Trial trial;
  std::shared_ptr<const std::vector<Trial>> trials;  ///< the same for all questions of a job
  bool may_start = true;
  PrunerVerdict answer = PrunerVerdict::kContinue;
};

/// One job: the trial went from epoch `begin` to `end`, and was then in this state.
struct JobDone {
  std::int64_t trial = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  TrialState state = TrialState::kRunning;

  friend bool operator==(const JobDone&, const JobDone&) = default;
};

void PrintTo(const JobDone& job, std::ostream* out);

struct FinishedStudy {
  std::vector<JobDone> jobs;
  std::vector<Trial> trials;
  std::vector<JobQuestion> asked_next;
  std::vector<JudgeQuestion> asked_to_judge;

  std::int64_t count(TrialState state) const {
    return std::count_if(trials.begin(), trials.end(),
                         [&](const Trial& trial) { return trial.state == state; });
  }
  /// How many epochs the trial was trained for.
  std::int64_t epochs(std::int64_t trial) const {
    const auto& values = trials[static_cast<std::size_t>(trial)].intermediate;
    return values.empty() ? 0 : values.back().step;
  }
};

/// Runs the jobs of a study as Pruner defines them, one after the other: each runs to its end when
/// it is decided, and is seen by the jobs that may see it.
class StudyRunner {
 public:
  StudyRunner(const Pruner& pruner, const StudyOfJobs& study) : pruner_(pruner), study_(study) {}

  FinishedStudy run() {
    while (const std::optional<NextJob> job = decide()) {
      std::int64_t trial = job->trial;
      if (job->kind == NextJob::Kind::kStart) {
        trial = started();
        Trial& fresh = done_.trials.emplace_back();
        fresh.number = trial;
        fresh.point = job->point ? *job->point : suggested_point(trial);
        if (job->trial >= 0) {
          fresh.copied_from = job->trial;
          fresh.intermediate = done_.trials[static_cast<std::size_t>(job->trial)].intermediate;
        }
      }
      run_job(done_.trials[static_cast<std::size_t>(trial)]);
    }
    return std::move(done_);
  }

 private:
  std::int64_t started() const { return static_cast<std::int64_t>(done_.trials.size()); }

  /// Nothing: the study has ended.
  std::optional<NextJob> decide() {
    const auto job = static_cast<std::int64_t>(done_.jobs.size());
    seen_ = std::max(seen_, job - study_.lag + 1);
    for (;;) {
      std::vector<Trial> shown = shown_trials();
      const bool may_start = !is_exhausted_ && started() < study_.trials;
      const NextJob next =
          pruner_.next_job(study_view(shown, study_.trials, may_start, study_.maximizes));
      done_.asked_next.push_back({std::move(shown), may_start, next});
      if (next.kind == NextJob::Kind::kStart && may_start) {
        if (started() < study_.points)
          return next;
        is_exhausted_ = true;  // the tuner says so when it is asked
      } else if (next.kind == NextJob::Kind::kResume) {
        return next;
      } else if (seen_ == job) {
        return std::nullopt;
      } else {
        ++seen_;
      }
    }
  }

  /// As the results of the first `seen_` jobs show them.
  std::vector<Trial> shown_trials() const {
    std::vector<Trial> shown = done_.trials;
    for (std::size_t job = done_.jobs.size(); job-- > static_cast<std::size_t>(seen_);) {
      Trial& trial = shown[static_cast<std::size_t>(done_.jobs[job].trial)];
      trial.state = TrialState::kRunning;
      trial.values.clear();
      trial.intermediate.resize(static_cast<std::size_t>(done_.jobs[job].begin));
    }
    return shown;
  }

  void run_job(Trial& trial) {
    std::vector<Trial> shown = shown_trials();
    shown[static_cast<std::size_t>(trial.number)].state = TrialState::kRunning;
    const auto others = std::make_shared<const std::vector<Trial>>(std::move(shown));
    const bool may_start = !is_exhausted_ && started() < study_.trials;
    trial.state = TrialState::kRunning;
    auto epoch = static_cast<std::int64_t>(trial.intermediate.size());
    const std::int64_t begin = epoch;
    std::optional<std::int64_t> step = pruner_.next_step(trial.number, epoch);
    while (trial.state == TrialState::kRunning) {
      ++epoch;
      if (study_.fails(trial.number, epoch)) {
        trial.state = TrialState::kFailed;
        --epoch;
        break;
      }
      const double value = study_.value(trial.number, epoch);
      trial.intermediate.push_back({epoch, value});
      if (epoch == study_.epochs(trial.number)) {
        trial.values = {value};
        trial.state = std::isnan(value) ? TrialState::kFailed : TrialState::kComplete;
      } else if (epoch == step) {
        const PrunerVerdict verdict =
            pruner_.judge(trial, study_view(*others, study_.trials, may_start, study_.maximizes));
        done_.asked_to_judge.push_back({trial, others, may_start, verdict});
        if (verdict != PrunerVerdict::kContinue)
          trial.state =
              verdict == PrunerVerdict::kPause ? TrialState::kPaused : TrialState::kPruned;
        step = pruner_.next_step(trial.number, epoch);
      }
    }
    done_.jobs.push_back({trial.number, begin, epoch, trial.state});
  }

  const Pruner& pruner_;
  const StudyOfJobs& study_;
  FinishedStudy done_;
  std::int64_t seen_ = 0;  // jobs whose results may be seen
  bool is_exhausted_ = false;
};

FinishedStudy run_study(const Pruner& pruner, const StudyOfJobs& study);

}  // namespace treadle::testing

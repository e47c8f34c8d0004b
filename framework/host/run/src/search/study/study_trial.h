#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <treadle/search/tuner.h>

#include "fit/cross_validation.h"
#include "fit/fit_planner.h"
#include "search/budget/epoch_times.h"
#include "search/study/job_result.h"
#include "search/study/objectives.h"

namespace treadle::internal {

/// The objective of a fold after an epoch.
struct FoldValue {
  std::int64_t step = 0;
  std::optional<double> value;  ///< nothing: undefined
};

/// One training of a trial: of a fold.
struct TrialFit {
  enum class State {
    kWaiting,  ///< the runner has not been given it
    kRunning,  ///< it has a slot, or waits for one
    kPaused,
    kEnded
  };
  struct Slot {
    std::chrono::steady_clock::time_point since;
    bool has_reported = false;
  };
  PlannedFit planned;
  State state = State::kWaiting;
  std::optional<Slot> slot = {};
  std::vector<FoldValue> values = {};
};

/// The fits of a trial that may still be trained.
struct TrialTraining {
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  std::unique_ptr<CrossValidation> folds;
  std::vector<TrialFit> fits = {};

  std::size_t fold_of(const FitId& id) const;
  TrialFit& fit(const FitId& id) { return fits[fold_of(id)]; }
  bool any_is(TrialFit::State state) const;
  bool all_have_ended() const { return have_all_reached(kNever); }
  /// Whether each fit has ended or has a value of this epoch or a later one.
  bool have_all_reached(std::int64_t epoch) const;
  /// Orders the fits that neither run, nor have ended, nor begin with the weights of a fit that has
  /// not ended.
  void order(FitPlanner::Orders& orders);
};

/// The stage of a trial's newest job in this process. A job advances through this list, and never
/// goes back: a later stage stands, whichever event came first.
class JobStage {
 public:
  enum Stage {
    kTraining,     ///< its fits run, or wait for a slot or for another process
    kInterrupted,  ///< its fits were stopped: it has no end
    kPausing,      ///< the pruner has paused it: it ends once its fits have left their slots
    kPruning,      ///< the pruner has pruned it
    kCancelling,   ///< a user has cancelled the trial
    kFailing,      ///< a fit failed, or could not be made, or its time is up
    kEnded         ///< its end is known; `StudyTrial::now` has it
  };

  /// Expects kEnded.
  void begin();
  void advance(Stage to);
  operator Stage() const { return stage_; }

 private:
  Stage stage_ = kEnded;
};

/// A trial of a study as its process has it.
struct StudyTrial {
  Trial now;  ///< its present state, which decisions may not see yet
  JobStage stage;
  std::string error;              ///< of a failed one
  std::size_t failed_fold = 0;    ///< the first that has one
  std::size_t jobs = 0;           ///< how many of its jobs have ended
  std::int64_t job = 0;           ///< the newest
  double job_seconds = 0;         ///< of one worker, for the newest job, in this process
  double seconds = 0;             ///< of one worker, for all jobs that have ended
  std::int64_t timed_epochs = 0;  ///< of each fit, in those jobs
  EpochTimes epoch_times;
  std::int64_t evaluated = 0;  ///< the last epoch after which the pruner evaluated it
  std::optional<std::int64_t> next_evaluation;
  /// Values that it took over with the weights of another trial.
  std::vector<IntermediateValue> inherited = {};
  std::optional<TrialTraining> training;

  bool is_cancelled() const { return error == kCancelled; }
  bool has_running_fit() const { return training && training->any_is(TrialFit::State::kRunning); }
  /// Records the failure of a fold. Of several, the error of the first fold stands.
  void fail(const std::string& message, std::size_t fold = 0);
  /// Whether the pruner evaluates it after this epoch.
  bool is_due_after(std::int64_t epoch) const;
  /// A fit reports its objective after an epoch; nothing: the epoch was not validated. Returns
  /// whether the fit has a defined value of this epoch. Call before the evaluation.
  bool report(TrialFit& fit, const EpochSummary& epoch, const std::optional<Number>& objective);
  /// Takes over the results of folds that have all completed. Returns kFailed if an objective has
  /// no value, otherwise kComplete.
  TrialState complete(const Objectives& objectives, const std::vector<std::string>& names);
  /// The result of its newest job if it ends now, in this state.
  JobResult result(TrialState state) const;
  /// Ends its newest job.
  void end_job(const JobResult& result);
};

/// How many of its epochs, up to the last that has a value, it was trained for itself, instead of
/// taking them over from another trial.
std::int64_t own_epochs(const StudyTrial& trial);
/// The values of a trial from those of its folds: the mean of those that are defined, after epochs
/// that all have reached; none where none is.
/// A fold that ended by itself keeps its last value.
std::vector<IntermediateValue> mean_of_folds(const std::vector<TrialFit>& fits);

/// The states of trials none of which is complete, for an error.
std::string why_none_is_complete(const std::vector<StudyTrial>& trials, const std::string& pruner);

}  // namespace treadle::internal

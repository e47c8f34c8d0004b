#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <treadle/search/pruner.h>
#include <treadle/search/tuner.h>

#include "fit/cross_validation.h"
#include "fit/fit_planner.h"
#include "search/budget/epoch_times.h"

namespace treadle::internal {

/// The objective of a fold after an epoch.
struct FoldValue {
  std::int64_t step = 0;
  std::optional<double> value;  ///< nothing: undefined
};

/// One training of a trial: of a fold.
struct TrialFit {
  enum class State { kWaiting, kRunning, kPaused, kEnded };
  PlannedFit planned;
  State state = State::kWaiting;
  bool is_known = false;                                            ///< to the runner
  std::optional<std::chrono::steady_clock::time_point> begun = {};  ///< while it has a slot
  bool is_at_first_epoch = false;                                   ///< since it has its slot
  std::vector<FoldValue> values = {};
};

/// What a trial has while it may still be trained.
struct TrialTraining {
  std::unique_ptr<CrossValidation> folds;
  std::vector<TrialFit> fits;
};

/// A trial of a study, with what its process knows of it.
struct StudyTrial {
  Trial now;                      ///< as it is, and not as decisions may see it
  std::string error;              ///< of a failed one
  std::size_t failed_fold;        ///< the first that has one
  std::size_t jobs = 0;           ///< of it, so far
  std::int64_t job = 0;           ///< the newest
  double seconds = 0;             ///< of one worker, in all its fits, for its jobs that have ended
  std::int64_t timed_epochs = 0;  ///< of each fit, in those jobs
  EpochTimes epoch_times;
  std::int64_t judged = 0;  ///< the last epoch it was judged after
  /// Values that it took over with the weights of another trial.
  std::vector<IntermediateValue> inherited = {};
  std::optional<std::int64_t> next_judged;
  std::optional<PrunerVerdict> verdict;  ///< that ends its job
  bool is_cut_off = false;
  bool is_cancelled = false;
  std::optional<TrialTraining> training;
};

bool has_running_fit(const StudyTrial& trial);
/// How many of its epochs, up to the last that has a value, it was trained for itself, instead of
/// taking them over from another trial.
std::int64_t own_epochs(const StudyTrial& trial);
/// The values of a trial from those of its folds: the mean of those that are defined, after epochs
/// that all have reached; none where none is.
/// A fold that ended by itself keeps its last value.
std::vector<IntermediateValue> mean_of_folds(const std::vector<TrialFit>& fits);

}  // namespace treadle::internal

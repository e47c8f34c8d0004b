#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include <treadle/core/components/state_dict.h>

namespace treadle::engine {

/// How long a training is at most.
struct TrainingLimits {
  std::optional<std::int64_t> epochs;             ///< nothing: until something stops it
  std::optional<std::int64_t> steps;              ///< may end in the middle of an epoch
  std::optional<std::int64_t> batches_per_epoch;  ///< nothing: known at an epoch's end
};

/// Where a training is, and whether it is over.
class Progress {
 public:
  explicit Progress(const TrainingLimits& limits) : limits_(limits) {}

  std::int64_t epochs_done() const { return epochs_; }
  std::int64_t steps_done() const { return steps_; }
  /// Of the epoch that is being trained.
  std::int64_t batches_done() const { return batches_; }
  /// From 1; between two epochs the one that has ended.
  std::int64_t epoch_of_last_step() const { return batches_ > 0 ? epochs_ + 1 : epochs_; }
  /// As far as it is known before the first step.
  std::optional<std::int64_t> total_steps() const;
  const TrainingLimits& limits() const { return limits_; }
  /// Trained so far, with what came before a resume.
  double seconds() const;
  /// Empty: nothing has stopped it.
  const std::string& stop_reason() const { return stop_reason_; }

  // Limits are passed where a training that goes on is given lower ones.
  bool has_all_epochs() const { return limits_.epochs && epochs_ >= *limits_.epochs; }
  bool has_all_steps() const { return limits_.steps && steps_ >= *limits_.steps; }
  /// No epoch follows the one that is being trained.
  bool is_ending() const { return has_all_epochs() || has_all_steps() || !stop_reason_.empty(); }
  bool is_finished() const { return is_ending() && batches_ == 0; }
  /// No batch of the epoch is to follow. False at the end of a stream, before it is met.
  bool is_last_of_epoch() const {
    return !stop_reason_.empty() || batches_ == limits_.batches_per_epoch || has_all_steps();
  }

  void end_step();
  void end_epoch();
  /// False, and nothing has changed, where it is ending already.
  bool stop(const std::string& reason);

  void save_in(StateDict& state) const;
  void load_from(const StateDict& state);

 private:
  TrainingLimits limits_;
  std::int64_t epochs_ = 0;
  std::int64_t steps_ = 0;
  std::int64_t batches_ = 0;
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  double earlier_seconds_ = 0;
  std::string stop_reason_;
};

}  // namespace treadle::engine

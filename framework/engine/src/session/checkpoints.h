#pragma once

#include <functional>

#include "session/checkpoint_clock.h"
#include "session/session_parts.h"

namespace treadle::engine {

/// Saves the state of a training when it is due, and ends it where a stop is requested. Weights
/// that are not finite are never saved. One training thread.
class Checkpoints {
 public:
  /// `state`: all of the training, asked for whenever it is saved.
  Checkpoints(const SessionParts& parts, const ScheduleSpan& span,
              std::function<StateDict()> state);

  /// Behind a step in the middle of an epoch.
  void after_step();
  /// An epoch has ended; actions of the loop until save_finished_epoch() are part of its end.
  void after_epoch() { has_unsaved_epoch_ = true; }
  void save_finished_epoch();
  /// Throws Interrupted again, if it has been thrown.
  void expect_uninterrupted() const;
  /// Saves and throws Interrupted. Within a step nothing is saved, as the loop is in the middle of
  /// it.
  [[noreturn]] void interrupt(bool within_step);
  /// The state is that of a checkpoint.
  void resumed() { clock_.saved(parts_.progress.steps_done()); }

  /// The wishes of this process for the time behind a step.
  ShardGroup::Signals wishes_behind(std::int64_t step) const;

  /// Throws TrainingError when a step found a loss or a gradient that is not finite.
  void expect_no_divergence() const;

 private:
  bool is_stop_requested() const;
  bool is_due() const;
  void save_if_due(bool at_epoch_end);
  void save(bool at_epoch_end, bool finished);
  [[noreturn]] void end() const;
  [[noreturn]] void report_divergence(std::int64_t step) const;

  const SessionParts parts_;
  CheckpointClock clock_;
  const std::function<StateDict()> state_;
  bool has_unsaved_epoch_ = false;
  bool is_interrupted_ = false;
};

}  // namespace treadle::engine

#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "session/callback_host.h"
#include "session/rates.h"
#include "session/session_parts.h"

namespace treadle::engine {

/// The numbers of the steps of an epoch, for its row of the history, and the steps that a training
/// has skipped. One training thread.
class EpochNumbers {
 public:
  /// All outlive it.
  EpochNumbers(const SessionParts& parts, Rates& rates, CallbackHost& callbacks)
      : parts_(parts), rates_(rates), callbacks_(callbacks) {}

  /// The row of the epoch that is being trained. `train_loss`: in place of the mean over its steps.
  EpochSummary row(const std::optional<Number>& train_loss);
  /// The skipped steps of the epoch, as a decision in its row and for the result.
  void note_skipped();
  /// The same for what kept steps from being captured, once.
  void note_uncaptured();
  void describe(TrainingResult& result) const;

  void save_in(StateDict& state) const;
  void load_from(const StateDict& state);

 private:
  Number mean_loss() const;

  const SessionParts parts_;
  Rates& rates_;
  CallbackHost& callbacks_;
  std::int64_t skipped_ = 0;  // of epochs that have ended
  std::vector<std::int64_t> skipped_at_;
  bool has_noted_uncaptured_ = false;
};

}  // namespace treadle::engine

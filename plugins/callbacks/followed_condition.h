#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <treadle/core/training/training_callback.h>

#include "condition.h"

namespace treadle::callbacks {

/// A condition with the values it looks at, epoch by epoch. A function of the history alone, so it
/// may be resumed from state().
class FollowedCondition final : public Stateful {
 public:
  explicit FollowedCondition(Condition condition) : condition_(std::move(condition)) {}

  /// In begin(): fails when the history will not have one of the numbers. In a refit, which has no
  /// validation rows, the condition then never holds, and a note names what is left out:
  /// `action`, "unfreezing encoder.*".
  void begin(TrainingControl& control, const std::string& action);

  /// Takes the newest row of the history; whether the condition holds now. Rows up to the last
  /// change of the training are forgotten.
  bool holds(const EpochSummary& row, const TrainingControl& control);

  const Condition& condition() const { return condition_; }

 private:
  struct Values {
    std::vector<std::int64_t> epochs;
    std::vector<double> values;
    Direction direction = Direction::kNone;
  };

  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;
  void take(const EpochSummary& row, std::int64_t last_changed_epoch);

  Condition condition_;
  bool is_active_ = true;
  std::int64_t after_ = 0;  // steps
  std::map<std::string, Values, std::less<>> followed_;
};

}  // namespace treadle::callbacks

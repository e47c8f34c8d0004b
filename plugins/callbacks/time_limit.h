#pragma once

#include <treadle/base/config.h>
#include <treadle/core/training/training_callback.h>

namespace treadle::callbacks {

/// Ends the training, with the epoch it is in, after some wall time; that before a resume counts.
/// Where it ends depends on the machine.
class TimeLimit final : public TrainingCallback {
 public:
  explicit TimeLimit(const Config& config) : limit_(config.get<Duration>("limit")) {
    if (limit_.unit != Duration::Unit::kSeconds)
      config.fail("limit", "expected wall time, such as \"2h\", \"30min\" or \"45s\"");
  }

 private:
  bool do_wants_steps() const override { return true; }
  void do_after_step(const StepReport&, TrainingControl& control) override {
    if (!control.is_refit() && control.seconds() >= limit_.value)
      control.stop("the time limit of " + limit_.text() + " was reached");
  }

  Duration limit_;
};

}  // namespace treadle::callbacks

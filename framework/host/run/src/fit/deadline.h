#pragma once

#include <chrono>

#include <treadle/core/training/training_callback.h>

namespace treadle::internal {

/// Ends a training with the epoch in which the time budget of its search is used up, as early
/// stopping would. It has no state: a process that goes on has another clock.
class Deadline final : public TrainingCallback {
 public:
  explicit Deadline(std::chrono::steady_clock::time_point at) : at_(at) {}

 private:
  void do_after_epoch(const EpochSummary&, TrainingControl& control) override {
    if (std::chrono::steady_clock::now() >= at_)
      control.stop("the time budget of the search was used up");
  }

  std::chrono::steady_clock::time_point at_;
};

}  // namespace treadle::internal

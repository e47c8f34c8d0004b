#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include <treadle/base/duration.h>
#include <treadle/core/training/learning_rate_schedule.h>

namespace treadle::engine {

/// Decides when enough has happened since the last checkpoint.
class CheckpointClock {
 public:
  /// Throws TrainingError when `every` cannot be counted in steps of `span`.
  CheckpointClock(Duration every, const ScheduleSpan& span) : every_(every) {
    if (every.unit != Duration::Unit::kSeconds)
      steps_ = std::max<std::int64_t>(1, span.steps(every));
  }

  bool due(std::int64_t step) const {
    if (steps_ > 0)
      return step - last_step_ >= steps_;
    const std::chrono::duration<double> passed = Clock::now() - last_time_;
    return passed.count() >= every_.value;
  }
  void saved(std::int64_t step) {
    last_step_ = step;
    last_time_ = Clock::now();
  }

 private:
  using Clock = std::chrono::steady_clock;

  Duration every_;
  std::int64_t steps_ = 0;
  std::int64_t last_step_ = 0;
  Clock::time_point last_time_ = Clock::now();
};

}  // namespace treadle::engine

#pragma once

#include <algorithm>
#include <chrono>
#include <thread>

namespace treadle::mpi_group {

/// Waits between two looks at something that another process does: not at all in the beginning,
/// since most messages come within microseconds, and then for a part of the time that has passed.
/// So a wait takes little longer than it must, and a long one little of a core.
class Backoff {
 public:
  using Clock = std::chrono::steady_clock;

  void wait() {
    const Clock::duration passed = Clock::now() - begin_;
    if (passed < kSpins)
      return;
    std::this_thread::sleep_for(std::min<Clock::duration>(passed / 8, kLongest));
  }

 private:
  static constexpr std::chrono::microseconds kSpins{100};
  static constexpr std::chrono::microseconds kLongest{1000};

  Clock::time_point begin_ = Clock::now();
};

}  // namespace treadle::mpi_group

#pragma once

#include <atomic>

namespace treadle::storages {

/// What this program's system calls say otherwise than the kernel; see wrong_system_test.cpp. Of
/// this process alone.
struct WrongSystem {
  /// By how many seconds every wall clock is wrong: CLOCK_REALTIME, gettimeofday(), time().
  static inline std::atomic<long> wall_clock_offset{0};
  /// What kind of file system every path lies on, as statfs(2) numbers them; 0: what it is.
  static inline std::atomic<long> file_system{0};
};

}  // namespace treadle::storages

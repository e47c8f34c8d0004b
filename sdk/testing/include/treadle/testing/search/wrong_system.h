#pragma once

#include <atomic>

namespace treadle::testing {

/// A system whose clocks and file systems differ from the kernel's, for the storages of one
/// machine. Takes effect in a program one of whose sources includes wrong_system_calls.h, and in
/// that process alone.
struct WrongSystem {
  /// By how many seconds every wall clock is wrong: CLOCK_REALTIME, gettimeofday(), time().
  static inline std::atomic<long> wall_clock_offset{0};
  /// What kind of file system every path lies on, as statfs(2) numbers them; 0: what it is.
  static inline std::atomic<long> file_system{0};
};

}  // namespace treadle::testing

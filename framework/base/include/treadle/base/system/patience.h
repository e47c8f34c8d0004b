#pragma once

#include <chrono>

namespace treadle {

/// How long something that may soon work is tried again: a lock that another process holds, a
/// server that is being restarted. The waits grow from a millisecond to `longest`, each with a
/// random part, so that processes that were refused together do not come back together.
class Patience {
 public:
  using Duration = std::chrono::duration<double>;

  Patience(Duration limit, Duration longest);

  /// Waits; false, at once, when the time is over.
  bool wait();
  /// What is left of the time, 0 or more.
  Duration left() const;
  Duration limit() const { return limit_; }

 private:
  using Clock = std::chrono::steady_clock;

  Duration limit_;
  Duration longest_;
  Clock::time_point end_;
  Duration next_;
};

/// A lock is held for milliseconds: whoever holds it for 30 seconds has been stopped. It is free
/// for less than that where others want it, too, so it is looked at often.
inline constexpr Patience::Duration kLockPatience{30};
inline constexpr Patience::Duration kLongestLockWait{0.005};

}  // namespace treadle

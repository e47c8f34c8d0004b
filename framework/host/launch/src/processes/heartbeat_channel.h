#pragma once

#include <array>
#include <chrono>
#include <cstdint>

namespace treadle::launch {

/// Instead of a step: no beats follow for a while.
inline constexpr std::int64_t kResting = -1;
/// The same with the last step, and the step of such a message.
constexpr std::int64_t resting_after(std::int64_t step) {
  return -2 - step;
}

/// The supervisor's side of a Heartbeat: messages of eight bytes on a pair of sockets: a step,
/// kResting, or resting_after() a step.
class HeartbeatChannel {
 public:
  using Clock = std::chrono::steady_clock;

  /// Throws std::system_error.
  HeartbeatChannel();
  ~HeartbeatChannel();
  HeartbeatChannel(const HeartbeatChannel&) = delete;
  HeartbeatChannel& operator=(const HeartbeatChannel&) = delete;

  int supervisor_end() const { return ends_[0]; }
  int rank_end() const { return ends_[1]; }
  /// The other process has it.
  void close_rank_end();

  /// Reads all beats that have arrived.
  void listen(Clock::time_point now);
  /// As if the process had beaten just now, where it has before.
  void forgive(Clock::time_point now);

  /// kResting before the first beat.
  std::int64_t last_step() const { return last_step_; }
  /// Since the last beat; 0 while no beat is due.
  Clock::duration silence(Clock::time_point now) const;

 private:
  std::array<int, 2> ends_{-1, -1};
  std::int64_t last_step_ = kResting;
  bool is_beating_ = false;
  Clock::time_point last_beat_{};
};

}  // namespace treadle::launch

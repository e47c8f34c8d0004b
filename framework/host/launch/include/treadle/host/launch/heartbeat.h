#pragma once

#include <chrono>
#include <cstdint>

namespace treadle::launch {

/// Sign of life of a process in a group: Supervisor ends the group when a process that has beaten
/// once is silent for too long. Beat after each step and batch; rest before work without beats.
///
///     Heartbeat heartbeat(WorkerPlace::from(environment_variables()).heartbeat);
///     for (…) { train(step); heartbeat.beat(step); }
///     heartbeat.rest();
///     write_report();
///
/// One thread at a time. It has no thread of its own, so that a hanging one is noticed. A beat
/// costs a look at the clock; every 100 ms one is sent. It never blocks, and never fails: a
/// supervisor that is gone hears nothing.
class Heartbeat {
 public:
  static constexpr std::chrono::milliseconds kInterval{100};

  /// Takes the descriptor, and closes it in programs that this one starts. -1: beats go nowhere.
  explicit Heartbeat(int descriptor);
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

  /// `step` steps are done, those before a resume included.
  void beat(std::int64_t step);
  /// The same where silence afterwards is no hang: the step is known, and nothing else follows.
  void report(std::int64_t step);
  /// Silence until the next beat is no hang: reading data, writing a report. Sent at once.
  void rest();

 private:
  /// Whether it is time to send again.
  bool is_due();
  void send(std::int64_t message);

  int descriptor_;
  std::chrono::steady_clock::time_point next_{};
  bool rests_ = false;
};

}  // namespace treadle::launch

#pragma once

#include <signal.h>

#include <optional>

namespace treadle::launch {

/// Holds back the signals that a supervisor acts on, to be read like a file: SIGINT, SIGTERM,
/// SIGHUP, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT, and SIGCHLD. Those that are ignored stay ignored, as
/// with nohup, SIGTERM aside. One object at a time, made and destroyed by the main thread of a
/// program that has no other threads yet; afterwards the signals do what they did before.
class SignalQueue {
 public:
  /// Throws std::system_error.
  SignalQueue();
  ~SignalQueue();
  SignalQueue(const SignalQueue&) = delete;
  SignalQueue& operator=(const SignalQueue&) = delete;

  /// Readable while a signal is waiting.
  int descriptor() const { return descriptor_; }
  /// The next one, without SIGCHLD; nothing: no more.
  std::optional<int> next();

 private:
  sigset_t before_{};
  struct sigaction term_before_ {};
  struct sigaction child_before_ {};
  int descriptor_ = -1;
};

}  // namespace treadle::launch

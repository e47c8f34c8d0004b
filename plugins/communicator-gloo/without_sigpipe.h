#pragma once

#include <signal.h>
#include <time.h>

namespace treadle::gloo_group {

/// While it lives, a closed connection does not kill this thread's process, nor threads that it
/// starts: Gloo writes to sockets without MSG_NOSIGNAL. The signal's disposition is the program's.
class WithoutSigpipe {
 public:
  WithoutSigpipe() {
    ::sigset_t pending;
    ::sigpending(&pending);
    was_pending_ = ::sigismember(&pending, SIGPIPE) == 1;
    ::sigemptyset(&sigpipe_);
    ::sigaddset(&sigpipe_, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &sigpipe_, &before_);
  }
  ~WithoutSigpipe() {
    if (!was_pending_) {
      const timespec at_once{};
      while (::sigtimedwait(&sigpipe_, nullptr, &at_once) == SIGPIPE) {
      }
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  WithoutSigpipe(const WithoutSigpipe&) = delete;
  WithoutSigpipe& operator=(const WithoutSigpipe&) = delete;

 private:
  ::sigset_t sigpipe_{};
  ::sigset_t before_{};
  bool was_pending_ = false;
};

}  // namespace treadle::gloo_group

#include "processes/signal_queue.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <initializer_list>
#include <system_error>

namespace treadle::launch {

SignalQueue::SignalQueue() {
  sigset_t ours;
  sigemptyset(&ours);
  for (const int signal : {SIGTERM, SIGCHLD})  // of ignored children no end can be waited for
    sigaddset(&ours, signal);
  for (const int signal : {SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT}) {
    // Linux keeps ignored signals that are held back.
    struct sigaction now {};
    ::sigaction(signal, nullptr, &now);
    if (now.sa_handler != SIG_IGN)
      sigaddset(&ours, signal);
  }
  descriptor_ = ::signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
  if (descriptor_ < 0)
    throw std::system_error(errno, std::generic_category(), "signals cannot be received");
  struct sigaction usual {};
  usual.sa_handler = SIG_DFL;
  ::sigaction(SIGTERM, &usual, &term_before_);
  ::sigaction(SIGCHLD, &usual, &child_before_);
  ::sigprocmask(SIG_BLOCK, &ours, &before_);
}

SignalQueue::~SignalQueue() {
  // Those that came meanwhile were for the group.
  while (next()) {
  }
  ::close(descriptor_);
  ::sigaction(SIGTERM, &term_before_, nullptr);
  ::sigaction(SIGCHLD, &child_before_, nullptr);
  ::sigprocmask(SIG_SETMASK, &before_, nullptr);
}

std::optional<int> SignalQueue::next() {
  signalfd_siginfo about{};
  while (::read(descriptor_, &about, sizeof about) == static_cast<ssize_t>(sizeof about)) {
    if (about.ssi_signo != SIGCHLD)
      return static_cast<int>(about.ssi_signo);
  }
  return std::nullopt;
}

}  // namespace treadle::launch

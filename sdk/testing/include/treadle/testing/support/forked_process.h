#pragma once

#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <exception>
#include <string>
#include <utility>

#include <treadle/base/error.h>

namespace treadle::testing {

/// A byte that one process sends and another one waits for. Made before the fork.
class Bell {
 public:
  Bell() { TREADLE_EXPECTS(::pipe(ends_) == 0, "a pipe can be made"); }
  ~Bell() {
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  Bell(const Bell&) = delete;
  Bell& operator=(const Bell&) = delete;

  void ring() { TREADLE_EXPECTS(::write(ends_[1], "!", 1) == 1, "a pipe takes a byte"); }
  void await() {
    char byte = 0;
    while (::read(ends_[0], &byte, 1) < 0 && errno == EINTR) {
    }
  }
  /// Waits so long at most; whether it rang.
  bool await(std::chrono::milliseconds at_most) {
    pollfd one{ends_[0], POLLIN, 0};
    if (::poll(&one, 1, static_cast<int>(at_most.count())) <= 0)
      return false;
    await();
    return true;
  }

 private:
  int ends_[2];
};

/// A process of its own that runs `work()`, a copy of this one otherwise. It ends without running
/// destructors of what this process had. Killed and gone when the object is.
///
/// What has locks, connections or threads must be made in `work`, not before.
class ForkedProcess {
 public:
  template <typename Work>
  explicit ForkedProcess(Work&& work) {
    int ends[2];
    TREADLE_EXPECTS(::pipe(ends) == 0, "a pipe can be made");
    pid_ = ::fork();
    TREADLE_EXPECTS(pid_ >= 0, "a process can be forked");
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // should the test crash
      std::string error;
      try {
        work();
      } catch (const std::exception& thrown) {
        error = thrown.what();
      } catch (...) {
        error = "something that is not derived from std::exception";
      }
      const bool said = ::write(ends[1], error.data(), error.size()) >= 0;
      ::_exit(said && error.empty() ? 0 : 1);
    }
    ::close(ends[1]);
    words_ = ends[0];
  }
  ForkedProcess(ForkedProcess&& other) noexcept
      : pid_(std::exchange(other.pid_, 0)), words_(std::exchange(other.words_, -1)) {}
  ForkedProcess& operator=(ForkedProcess&& other) noexcept {
    std::swap(pid_, other.pid_);
    std::swap(words_, other.words_);
    return *this;
  }
  ~ForkedProcess() {
    kill();
    if (words_ >= 0)
      ::close(words_);
  }

  void send(int signal) const { ::kill(pid_, signal); }
  /// Stops it where it is, as SIGSTOP does, until thaw().
  void freeze() const {
    send(SIGSTOP);
    siginfo_t info{};
    ::waitid(P_PID, static_cast<id_t>(pid_), &info, WSTOPPED);
  }
  void thaw() const { send(SIGCONT); }
  /// Ends it at once, wherever it is, and waits until it is gone.
  void kill() {
    if (pid_ == 0)
      return;
    send(SIGKILL);
    reap();
  }
  /// Whether it has ended by itself; it is gone then.
  bool has_ended() {
    siginfo_t info{};
    return pid_ == 0 ||
           (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
            info.si_pid == pid_);
  }
  /// Waits until it ends; what it threw, in words, empty for nothing.
  std::string join() {
    std::string error;
    char buffer[256];
    for (ssize_t count = 0; (count = ::read(words_, buffer, sizeof buffer)) > 0;)
      error.append(buffer, static_cast<std::size_t>(count));
    const int status = reap();
    if (error.empty() && !(WIFEXITED(status) && WEXITSTATUS(status) == 0))
      return "it ended with the status " + std::to_string(status);
    return error;
  }

 private:
  int reap() {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = 0;
    return status;
  }

  pid_t pid_ = 0;
  int words_ = -1;
};

}  // namespace treadle::testing

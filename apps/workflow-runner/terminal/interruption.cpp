#include "terminal/interruption.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <system_error>
#include <thread>
#include <utility>

#include <treadle/base/error.h>

namespace treadle::cli {
namespace {

constexpr std::array<int, 3> kSignals{SIGINT, SIGTERM, SIGHUP};
/// nohup ignores SIGHUP, and a shell SIGINT of what it starts with &: that stays so, as POSIX has
/// it. Nobody means to make a training deaf to SIGTERM.
bool may_be_ignored(int signal) {
  return signal != SIGTERM;
}
// Long enough to end in order where that is possible.
constexpr int kPatienceMs = 1000;
constexpr int kExitCode = static_cast<int>(ErrorKind::kInterrupted);

// A signal handler reaches nothing but this.
std::atomic<int> signal_pipe{-1};
std::atomic<int> signals_seen{0};
static_assert(std::atomic<int>::is_always_lock_free);

extern "C" void treadle_note_signal(int) {
  const int saved = errno;
  if (signals_seen.fetch_add(1) > 0) {
    // Not exit(): whatever the threads hold locked, it must not be waited for.
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, "\n", 1);
    _exit(kExitCode);
  }
  [[maybe_unused]] const ssize_t written = write(signal_pipe.load(), "!", 1);
  errno = saved;
}

}  // namespace

struct Interruption::Impl {
  std::stop_source stop;
  std::function<void(bool)> on_request;
  std::function<void()> on_giving_up;
  std::atomic<bool> expects_saving{false};
  std::array<int, 2> pipe{-1, -1};
  std::array<struct sigaction, kSignals.size()> before{};
  std::thread listener;

  void listen() {
    char what = 0;
    while (read(pipe[0], &what, 1) < 0 && errno == EINTR) {
    }
    if (what != '!')
      return;
    stop.request_stop();
    on_request(expects_saving);
    if (expects_saving || has_ended_in_time())
      return;
    if (expects_saving)  // by now
      return;
    on_giving_up();
    _exit(kExitCode);
  }

  /// Whether this object is being destroyed: whoever owned it has heard of the request.
  bool has_ended_in_time() const {
    pollfd end{pipe[0], POLLIN, 0};
    int ready = 0;
    do {
      ready = poll(&end, 1, kPatienceMs);
    } while (ready < 0 && errno == EINTR);
    return ready > 0;
  }
};

Interruption::Interruption(std::function<void(bool)> on_request, std::function<void()> on_giving_up)
    : impl_(std::make_unique<Impl>()) {
  impl_->on_request = std::move(on_request);
  impl_->on_giving_up = std::move(on_giving_up);
  if (pipe2(impl_->pipe.data(), O_CLOEXEC) != 0)
    throw std::system_error(errno, std::generic_category(), "cannot listen for Ctrl-C");
  signals_seen = 0;
  signal_pipe = impl_->pipe[1];
  impl_->listener = std::thread([this] { impl_->listen(); });
  struct sigaction action {};
  action.sa_handler = treadle_note_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], nullptr, &impl_->before[i]);
    if (!may_be_ignored(kSignals[i]) || impl_->before[i].sa_handler != SIG_IGN)
      sigaction(kSignals[i], &action, nullptr);
  }
}

Interruption::~Interruption() {
  for (std::size_t i = 0; i < kSignals.size(); ++i)
    sigaction(kSignals[i], &impl_->before[i], nullptr);
  [[maybe_unused]] const ssize_t written = write(impl_->pipe[1], ".", 1);
  impl_->listener.join();
  signal_pipe = -1;
  for (int end : impl_->pipe)
    close(end);
}

void Interruption::expect_saving() noexcept {
  impl_->expects_saving.store(true, std::memory_order_relaxed);
}

std::stop_token Interruption::token() const {
  return impl_->stop.get_token();
}

}  // namespace treadle::cli

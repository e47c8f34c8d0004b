#include <treadle/host/launch/heartbeat.h>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "processes/heartbeat_channel.h"

namespace treadle::launch {

Heartbeat::Heartbeat(int descriptor) : descriptor_(descriptor) {
  if (descriptor_ >= 0)
    ::fcntl(descriptor_, F_SETFD, FD_CLOEXEC);
}

Heartbeat::~Heartbeat() {
  if (descriptor_ >= 0)
    ::close(descriptor_);
}

void Heartbeat::beat(std::int64_t step) {
  if (descriptor_ < 0 || !(is_due() || rests_))
    return;
  rests_ = false;
  send(step);
}

void Heartbeat::report(std::int64_t step) {
  if (descriptor_ < 0 || !(is_due() || !rests_))
    return;
  rests_ = true;
  send(resting_after(step));
}

void Heartbeat::rest() {
  if (descriptor_ < 0 || rests_)
    return;
  rests_ = true;
  send(kResting);
}

bool Heartbeat::is_due() {
  const auto now = std::chrono::steady_clock::now();
  if (now < next_)
    return false;
  next_ = now + kInterval;
  return true;
}

void Heartbeat::send(std::int64_t message) {
  // A full socket means that the supervisor is late: the beats before this one tell enough.
  [[maybe_unused]] const ssize_t sent =
      ::send(descriptor_, &message, sizeof message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

HeartbeatChannel::HeartbeatChannel() {
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends_.data()) != 0)
    throw std::system_error(errno, std::generic_category(), "no heartbeat can be received");
}

HeartbeatChannel::~HeartbeatChannel() {
  for (const int end : ends_) {
    if (end >= 0)
      ::close(end);
  }
}

void HeartbeatChannel::close_rank_end() {
  ::close(std::exchange(ends_[1], -1));
}

void HeartbeatChannel::listen(Clock::time_point now) {
  std::int64_t message = 0;
  while (::recv(ends_[0], &message, sizeof message, MSG_DONTWAIT) ==
         static_cast<ssize_t>(sizeof message)) {
    is_beating_ = message >= 0;
    last_beat_ = now;
    if (message != kResting)
      last_step_ = is_beating_ ? message : resting_after(message);
  }
}

void HeartbeatChannel::forgive(Clock::time_point now) {
  last_beat_ = now;
}

HeartbeatChannel::Clock::duration HeartbeatChannel::silence(Clock::time_point now) const {
  return is_beating_ ? now - last_beat_ : Clock::duration::zero();
}

}  // namespace treadle::launch

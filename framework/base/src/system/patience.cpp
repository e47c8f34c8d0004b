#include <treadle/base/system/patience.h>

#include <algorithm>
#include <random>
#include <thread>

namespace treadle {
namespace {

constexpr Patience::Duration kFirstWait{0.001};

// Between a half and one and a half. Results of a study do not depend on it.
double jitter() {
  thread_local std::minstd_rand random{std::random_device{}()};
  return std::uniform_real_distribution<>(0.5, 1.5)(random);
}

}  // namespace

Patience::Patience(Duration limit, Duration longest)
    : limit_(limit),
      longest_(longest),
      end_(Clock::now() + std::chrono::duration_cast<Clock::duration>(limit)),
      next_(kFirstWait) {}

Patience::Duration Patience::left() const {
  return std::max<Duration>(end_ - Clock::now(), Duration::zero());
}

bool Patience::wait() {
  const Duration left = this->left();
  if (left == Duration::zero())
    return false;
  std::this_thread::sleep_for(std::min(next_ * jitter(), left));
  next_ = std::min(next_ * 2, longest_);
  return true;
}

}  // namespace treadle

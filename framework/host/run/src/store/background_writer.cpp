#include "store/background_writer.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include <treadle/base/error.h>

// One thread ("treadle-write") that works for all lanes. One mutex guards the lanes; it is released
// while a piece of work is done.
//
// A lane's failure is kept for good and its waiting work dropped: later work must not look as if
// everything before it had been saved. `failure_` is written before `has_failed_` (release) and
// never again, so expect_no_failure() reads it without the mutex, after every training step.
//
// wait() returns when nothing waits and nothing is done, also after a failure. ~Lane() waits as
// well: work refers to what its owner has.

namespace treadle::internal {

BackgroundWriter::BackgroundWriter() : thread_([this] { keep_working(); }) {}

BackgroundWriter::~BackgroundWriter() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void BackgroundWriter::keep_working() {
  pthread_setname_np(pthread_self(), "treadle-write");
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stopping_ || next() != nullptr; });
    Lane* lane = next();
    if (lane == nullptr)
      return;
    std::function<void()> work = std::exchange(lane->waiting_, nullptr);
    lane->is_busy_ = true;
    lane->last_turn_ = ++turns_;
    lock.unlock();
    std::exception_ptr failure;
    try {
      work();
    } catch (...) {
      failure = std::current_exception();
    }
    work = nullptr;  // what it holds is gone before its owner hears that it is done
    lock.lock();
    lane->is_busy_ = false;
    if (failure) {
      lane->failure_ = std::move(failure);
      lane->has_failed_.store(true, std::memory_order_release);
      lane->waiting_ = nullptr;
    }
    done_.notify_all();
  }
}

/// The lane with work whose last turn is longest ago.
BackgroundWriter::Lane* BackgroundWriter::next() const {
  Lane* found = nullptr;
  for (Lane* lane : lanes_) {
    if (!lane->waiting_)
      continue;
    if (found == nullptr || lane->last_turn_ < found->last_turn_)
      found = lane;
  }
  return found;
}

BackgroundWriter::Lane::Lane(BackgroundWriter& writer) : writer_(writer) {
  const std::lock_guard lock(writer_.mutex_);
  writer_.lanes_.push_back(this);
}

BackgroundWriter::Lane::~Lane() {
  wait();
  const std::lock_guard lock(writer_.mutex_);
  std::erase(writer_.lanes_, this);
}

bool BackgroundWriter::Lane::withdraw() {
  const std::lock_guard lock(writer_.mutex_);
  return std::exchange(waiting_, nullptr) != nullptr;
}

bool BackgroundWriter::Lane::is_busy() const {
  const std::lock_guard lock(writer_.mutex_);
  return is_busy_;
}

void BackgroundWriter::Lane::submit(std::function<void()> work) {
  TREADLE_EXPECTS(work != nullptr, "a lane takes work that can be called");
  {
    const std::lock_guard lock(writer_.mutex_);
    // The work that was waiting is destroyed with `work`, after the mutex is released.
    if (failure_)
      return;
    waiting_.swap(work);
  }
  writer_.wake_.notify_one();
}

void BackgroundWriter::Lane::wait() {
  std::unique_lock lock(writer_.mutex_);
  writer_.done_.wait(lock, [this] { return is_idle(); });
}

void BackgroundWriter::Lane::expect_no_failure() const {
  if (has_failed_.load(std::memory_order_acquire))
    std::rethrow_exception(failure_);
}

}  // namespace treadle::internal

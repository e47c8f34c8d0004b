#include "events/announcer.h"

#include <pthread.h>

#include <utility>

namespace treadle::internal {

Announcer::Announcer(Audience& audience, std::size_t capacity)
    : audience_(audience), capacity_(capacity), thread_([this] { keep_telling(); }) {}

Announcer::~Announcer() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void Announcer::tell(Call call) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return queue_.size() < capacity_ || failure_; });
  expect_no_failure();
  hand_in(std::move(call));
}

std::uint64_t Announcer::mark() const {
  const std::lock_guard lock(mutex_);
  return handed_in_;
}

void Announcer::wait_for(std::uint64_t mark) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return told_ >= mark || failure_; });
  expect_no_failure();
}

void Announcer::settle() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return queue_.empty() && !is_telling_; });
}

/// With the lock held, as everything below.
void Announcer::hand_in(Call call) {
  queue_.push_back(std::move(call));
  ++handed_in_;
  wake_.notify_one();
}

void Announcer::expect_no_failure() const {
  if (failure_)
    std::rethrow_exception(failure_);
}

std::vector<Announcer::Step> Announcer::take_steps() {
  std::vector<Step> steps;
  for (Training* training : trainings_) {
    if (!training->step_)
      continue;
    steps.push_back({training->fit_, *training->step_});
    training->step_.reset();
  }
  return steps;
}

void Announcer::keep_telling() {
  pthread_setname_np(pthread_self(), "treadle-tell");
  using Clock = std::chrono::steady_clock;
  Clock::time_point steps_due = Clock::now();
  std::unique_lock lock(mutex_);
  for (;;) {
    if (!queue_.empty()) {
      const Call call = std::move(queue_.front());
      queue_.pop_front();
      tell_one(lock, [&] { audience_.tell(call); });
      ++told_;
      changed_.notify_all();
      continue;
    }
    if (stopping_)
      return;
    // Only while the queue is empty: a step must not overtake the end of the epoch before it.
    if (!trainings_.empty() && Clock::now() >= steps_due) {
      for (const Step& step : take_steps()) {
        tell_one(lock, [&] {
          audience_.tell([&](RunObserver& o) { o.step_completed(step.fit, step.progress); });
        });
      }
      changed_.notify_all();
      steps_due = Clock::now() + kBetweenSteps;
      continue;
    }
    if (trainings_.empty()) {
      wake_.wait(lock);
    } else {
      wake_.wait_until(lock, steps_due);
    }
  }
}

void Announcer::tell_one(std::unique_lock<std::mutex>& lock, const std::function<void()>& telling) {
  if (failure_)
    return;
  is_telling_ = true;
  lock.unlock();
  std::exception_ptr failure;
  try {
    telling();
  } catch (...) {
    failure = std::current_exception();
  }
  lock.lock();
  is_telling_ = false;
  if (!failure)
    return;
  failure_ = std::move(failure);
  queue_.clear();
}

Announcer::Training::Training(Announcer& announcer, FitId fit)
    : announcer_(announcer), fit_(std::move(fit)) {
  const std::lock_guard lock(announcer_.mutex_);
  announcer_.trainings_.push_back(this);
  announcer_.wake_.notify_one();
}

Announcer::Training::~Training() {
  const std::lock_guard lock(announcer_.mutex_);
  hand_in_step();
  std::erase(announcer_.trainings_, this);
}

void Announcer::Training::step_completed(const StepProgress& progress) {
  const std::lock_guard lock(announcer_.mutex_);
  announcer_.expect_no_failure();
  step_ = progress;
}

void Announcer::Training::tell(Call call) {
  std::unique_lock lock(announcer_.mutex_);
  announcer_.changed_.wait(lock, [this] {
    return announcer_.queue_.size() < announcer_.capacity_ || announcer_.failure_;
  });
  announcer_.expect_no_failure();
  hand_in_step();
  announcer_.hand_in(std::move(call));
}

void Announcer::Training::hand_in_step() {
  if (!step_ || announcer_.failure_)
    return;
  announcer_.hand_in(
      [fit = fit_, progress = *step_](RunObserver& o) { o.step_completed(fit, progress); });
  step_.reset();
}

}  // namespace treadle::internal

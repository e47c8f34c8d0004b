#include "events/event_dispatcher.h"

#include <pthread.h>

#include <utility>

// A queue of calls and one thread that makes them ("treadle-events").
//
// Who waits for whom:
// - notify() waits for room in the queue, so a slow observer slows trainings down instead of
//   filling the memory. Steps never wait: each training has one slot, which the next step
//   overwrites.
// - wait_for() waits until everything up to a mark was delivered. The writer of checkpoints uses
//   it: a history that is behind its checkpoint would leave a gap in a resumed run.
// - settle() waits until no call is under way or queued, also after a failure. It ends a run:
//   observers may be destroyed afterwards.
// The thread itself must never call notify() or wait_for(), or it could wait for itself. Observers
// therefore get no access to the dispatcher.
//
// One mutex guards everything. It is released only while an observer is called (dispatch_one()), so
// the arguments of a call are moved or copied out before: the queue may grow meanwhile, and a
// training may end.
//
// Failure. RunObservers drops an observer that throws, except for a StorageError of the run's own
// files. It arrives here and is kept for good, the queue is emptied, and every waiting or
// later notify() and wait_for() throws it: a run whose history cannot be written must not go on.

namespace treadle::internal {

EventDispatcher::EventDispatcher(RunObservers& observers, std::size_t capacity)
    : observers_(observers), capacity_(capacity), thread_([this] { dispatch(); }) {}

EventDispatcher::~EventDispatcher() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  // The thread makes the remaining calls first: dispatch() looks at stopping_ only when the queue
  // is empty.
  wake_.notify_all();
  thread_.join();
}

void EventDispatcher::notify(Call call) {
  std::unique_lock lock(mutex_);
  // A failure ends the wait as well: nobody takes calls out any more.
  changed_.wait(lock, [this] { return queue_.size() < capacity_ || failure_; });
  expect_no_failure();
  queue(std::move(call));
}

std::uint64_t EventDispatcher::mark() const {
  const std::lock_guard lock(mutex_);
  return queued_;
}

void EventDispatcher::wait_for(std::uint64_t mark) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return dispatched_ >= mark || failure_; });
  expect_no_failure();
}

void EventDispatcher::settle() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return queue_.empty() && !is_dispatching_; });
}

/// With the lock held, as everything below.
void EventDispatcher::queue(Call call) {
  queue_.push_back(std::move(call));
  ++queued_;
  wake_.notify_one();
}

void EventDispatcher::expect_no_failure() const {
  if (failure_)
    std::rethrow_exception(failure_);
}

std::vector<EventDispatcher::Step> EventDispatcher::take_steps() {
  std::vector<Step> steps;
  // Copies: once the mutex is released, a training may end and its Training be gone.
  for (Training* training : trainings_) {
    if (!training->step_)
      continue;
    steps.push_back({training->fit_, *training->step_});
    training->step_.reset();
  }
  return steps;
}

void EventDispatcher::dispatch() {
  pthread_setname_np(pthread_self(), "treadle-events");
  using Clock = std::chrono::steady_clock;
  Clock::time_point steps_due = Clock::now();
  std::unique_lock lock(mutex_);
  for (;;) {
    if (!queue_.empty()) {
      const Call call = std::move(queue_.front());
      queue_.pop_front();
      dispatch_one(lock, [&] { observers_.notify(call); });
      ++dispatched_;
      changed_.notify_all();
      continue;
    }
    if (stopping_)
      return;
    // Only while the queue is empty: a step must not overtake the end of the epoch before it.
    if (!trainings_.empty() && Clock::now() >= steps_due) {
      for (const Step& step : take_steps()) {
        dispatch_one(lock, [&] {
          observers_.notify([&](RunObserver& o) { o.step_completed(step.fit, step.progress); });
        });
      }
      changed_.notify_all();
      steps_due = Clock::now() + kBetweenSteps;
      continue;
    }
    // Without trainings there are no steps to look for. step_completed() does not wake the thread:
    // it is called after every step, and the deadline finds what it stored.
    if (trainings_.empty()) {
      wake_.wait(lock);
    } else {
      wake_.wait_until(lock, steps_due);
    }
  }
}

void EventDispatcher::dispatch_one(std::unique_lock<std::mutex>& lock,
                                   const std::function<void()>& telling) {
  // After a failure no call is made any more; queued ones are discarded.
  if (failure_)
    return;
  is_dispatching_ = true;
  lock.unlock();
  std::exception_ptr failure;
  try {
    telling();
  } catch (...) {
    failure = std::current_exception();
  }
  lock.lock();
  is_dispatching_ = false;
  if (!failure)
    return;
  failure_ = std::move(failure);
  queue_.clear();
}

EventDispatcher::Training::Training(EventDispatcher& dispatcher, FitId fit)
    : dispatcher_(dispatcher), fit_(std::move(fit)) {
  const std::lock_guard lock(dispatcher_.mutex_);
  dispatcher_.trainings_.push_back(this);
  dispatcher_.wake_.notify_one();
}

EventDispatcher::Training::~Training() {
  // Without waiting for room: a destructor may run while an exception is on its way. The queue can
  // exceed its capacity by one step per training.
  const std::lock_guard lock(dispatcher_.mutex_);
  queue_step();
  std::erase(dispatcher_.trainings_, this);
}

void EventDispatcher::Training::step_completed(const StepProgress& progress) {
  const std::lock_guard lock(dispatcher_.mutex_);
  dispatcher_.expect_no_failure();
  step_ = progress;
}

void EventDispatcher::Training::notify(Call call) {
  std::unique_lock lock(dispatcher_.mutex_);
  dispatcher_.changed_.wait(lock, [this] {
    return dispatcher_.queue_.size() < dispatcher_.capacity_ || dispatcher_.failure_;
  });
  dispatcher_.expect_no_failure();
  // A training's events keep their order: its newest step comes before what happened after it. The
  // queue may exceed its capacity by this one call.
  queue_step();
  dispatcher_.queue(std::move(call));
}

void EventDispatcher::Training::queue_step() {
  if (!step_ || dispatcher_.failure_)
    return;
  dispatcher_.queue(
      [fit = fit_, progress = *step_](RunObserver& o) { o.step_completed(fit, progress); });
  step_.reset();
}

}  // namespace treadle::internal

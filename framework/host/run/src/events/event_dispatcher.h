#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include <treadle/core/history/run_observer.h>

#include "events/run_observers.h"

namespace treadle::internal {

/// Notifies the observers of a run from a thread of its own: no training waits for a file, a
/// terminal or an observer.
///
/// Calls are made in the order in which they were queued, and none is dropped; notify() waits while
/// `capacity` calls are queued. Of the steps of a training only the newest is sent, a few times a
/// second and before whatever else that training sends. A StorageError of the run's own files ends
/// the run: it is thrown by the next notify(), and no further call is made. Thread-safe.
class EventDispatcher {
 public:
  class Training;
  using Call = std::function<void(RunObserver&)>;

  static constexpr std::size_t kCapacity = 1024;
  static constexpr std::chrono::milliseconds kBetweenSteps{50};

  explicit EventDispatcher(RunObservers& observers, std::size_t capacity = kCapacity);
  /// Makes the calls that are left.
  ~EventDispatcher();
  EventDispatcher(const EventDispatcher&) = delete;
  EventDispatcher& operator=(const EventDispatcher&) = delete;

  void notify(Call call);

  /// A number for everything that was queued until now.
  std::uint64_t mark() const;
  /// Waits until those calls have been made.
  void wait_for(std::uint64_t mark);
  void drain() { wait_for(mark()); }
  /// Waits until no call is being made, whatever has failed.
  void settle();

 private:
  struct Step {
    FitId fit;
    StepProgress progress;
  };

  void dispatch();
  void dispatch_one(std::unique_lock<std::mutex>& lock, const std::function<void()>& call);
  void queue(Call call);
  void expect_no_failure() const;
  std::vector<Step> take_steps();

  RunObservers& observers_;
  const std::size_t capacity_;

  mutable std::mutex mutex_;  // guards what follows, and the trainings
  std::condition_variable wake_;
  std::condition_variable changed_;
  std::deque<Call> queue_;
  std::uint64_t queued_ = 0;
  std::uint64_t dispatched_ = 0;
  bool is_dispatching_ = false;
  bool stopping_ = false;
  std::exception_ptr failure_;
  std::vector<Training*> trainings_;
  std::thread thread_;  // last: it uses the others
};

/// The events of one training. Belongs to the training's thread.
class EventDispatcher::Training {
 public:
  Training(EventDispatcher& dispatcher, FitId fit);
  /// Sends its last step, too.
  ~Training();
  Training(const Training&) = delete;
  Training& operator=(const Training&) = delete;

  /// Costs an uncontended lock and a store.
  void step_completed(const StepProgress& progress);
  void notify(Call call);

 private:
  friend class EventDispatcher;

  /// Queues the newest step, if it has not been sent yet.
  void queue_step();

  EventDispatcher& dispatcher_;
  const FitId fit_;
  std::optional<StepProgress> step_;  // not sent yet
};

}  // namespace treadle::internal

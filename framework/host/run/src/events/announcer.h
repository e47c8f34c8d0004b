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

#include <treadle/core/run_observer.h>

#include "events/run_files.h"

namespace treadle::internal {

/// Tells an Audience what happens in a run, from a thread of its own: no training waits for a file,
/// a terminal or an observer.
///
/// What is told comes in the order in which it was handed in, and nothing is left out; who tells
/// faster than the audience listens waits once `capacity` calls are queued. Of the steps of a
/// training only the newest is told, a few times a second and before whatever else that training
/// tells. What ends the run (a StorageError of the run's own files) is thrown at whoever tells
/// next; nothing is told after it. Thread-safe.
class Announcer {
 public:
  class Training;
  using Call = std::function<void(RunObserver&)>;

  static constexpr std::size_t kCapacity = 1024;
  static constexpr std::chrono::milliseconds kBetweenSteps{50};

  explicit Announcer(Audience& audience, std::size_t capacity = kCapacity);
  /// Tells what is left.
  ~Announcer();
  Announcer(const Announcer&) = delete;
  Announcer& operator=(const Announcer&) = delete;

  void tell(Call call);

  /// A number for everything that was handed in until now.
  std::uint64_t mark() const;
  /// Waits until it has been told.
  void wait_for(std::uint64_t mark);
  void drain() { wait_for(mark()); }
  /// Waits until nobody is being told anything, whatever has failed.
  void settle();

 private:
  struct Step {
    FitId fit;
    StepProgress progress;
  };

  void keep_telling();
  void tell_one(std::unique_lock<std::mutex>& lock, const std::function<void()>& telling);
  void hand_in(Call call);
  void expect_no_failure() const;
  std::vector<Step> take_steps();

  Audience& audience_;
  const std::size_t capacity_;

  mutable std::mutex mutex_;  // guards what follows, and the trainings
  std::condition_variable wake_;
  std::condition_variable changed_;
  std::deque<Call> queue_;
  std::uint64_t handed_in_ = 0;
  std::uint64_t told_ = 0;
  bool is_telling_ = false;
  bool stopping_ = false;
  std::exception_ptr failure_;
  std::vector<Training*> trainings_;
  std::thread thread_;  // last: it uses the others
};

/// What one training has to tell. Belongs to the training's thread.
class Announcer::Training {
 public:
  Training(Announcer& announcer, FitId fit);
  /// Its last step is told, too.
  ~Training();
  Training(const Training&) = delete;
  Training& operator=(const Training&) = delete;

  /// Costs an uncontended lock and a store.
  void step_completed(const StepProgress& progress);
  void tell(Call call);

 private:
  friend class Announcer;

  /// Puts the newest step into the queue, if nobody heard of it yet.
  void hand_in_step();

  Announcer& announcer_;
  const FitId fit_;
  std::optional<StepProgress> step_;  // not told yet
};

}  // namespace treadle::internal

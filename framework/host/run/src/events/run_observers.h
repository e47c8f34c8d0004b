#pragma once

#include <exception>
#include <mutex>
#include <string>
#include <vector>

#include <treadle/base/error.h>
#include <treadle/core/history/run_observer.h>

namespace treadle::internal {

/// The observers of a run. One call at a time; an observer that throws is reported to the others
/// once and not called again.
class RunObservers {
 public:
  void add(RunObserver& observer) { observers_.push_back({.observer = &observer}); }
  void remove(const RunObserver& observer) {
    std::erase_if(observers_,
                  [&](const Listener& listener) { return listener.observer == &observer; });
  }
  /// One of the run's own files: a StorageError that it throws is an error of the run, and
  /// notify() throws it.
  void add_file(RunObserver& file) {
    observers_.push_back({.observer = &file, .ends_the_run = true});
  }

  /// Does something while no observer is being called.
  template <typename Work>
  void between_calls(Work&& work) {
    const std::lock_guard lock(mutex_);
    work();
  }

  template <typename Call>
  void notify(Call&& call) {
    const std::lock_guard lock(mutex_);
    for (Listener& listener : observers_)
      notify_one(listener, call);
  }

 private:
  struct Listener {
    RunObserver* observer;
    bool ends_the_run = false;
    bool failed = false;
  };

  template <typename Call>
  void notify_one(Listener& listener, Call&& call) {
    if (listener.failed)
      return;
    try {
      call(*listener.observer);
    } catch (const StorageError& error) {
      if (listener.ends_the_run)
        throw;
      drop(listener, error.what());
    } catch (const std::exception& error) {
      drop(listener, error.what());
    } catch (...) {
      if (listener.ends_the_run)
        throw;
      drop(listener, "it threw something that is not a std::exception");
    }
  }
  void drop(Listener& listener, const std::string& reason);

  std::mutex mutex_;
  std::vector<Listener> observers_;
};

}  // namespace treadle::internal

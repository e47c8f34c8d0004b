#pragma once

#include <exception>
#include <mutex>
#include <string>
#include <vector>

#include <treadle/base/error.h>
#include <treadle/core/run_observer.h>

namespace treadle::internal {

/// The observers of a run. One call at a time; an observer that throws is reported to the others
/// once and not called again.
class RunObservers {
 public:
  void add(RunObserver& observer) { observers_.push_back({&observer, false}); }

  /// Does something while no observer is being called.
  template <typename Work>
  void between_calls(Work&& work) {
    const std::lock_guard lock(mutex_);
    work();
  }

  template <typename Call>
  void notify(Call&& call) {
    const std::lock_guard lock(mutex_);
    for (Listener& listener : observers_) {
      if (listener.failed)
        continue;
      try {
        call(*listener.observer);
      } catch (const Error& error) {
        // The run's own files are observers too: what they cannot write is an error of the run.
        if (error.kind() == ErrorKind::kStorage)
          throw;
        drop(listener, error.what());
      } catch (const std::exception& error) {
        drop(listener, error.what());
      }
    }
  }

 private:
  struct Listener {
    RunObserver* observer;
    bool failed;
  };
  void drop(Listener& listener, const std::string& reason);

  std::mutex mutex_;
  std::vector<Listener> observers_;
};

}  // namespace treadle::internal

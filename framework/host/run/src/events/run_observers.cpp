#include "events/run_observers.h"

namespace treadle::internal {

void RunObservers::drop(Listener& listener, const std::string& reason) {
  listener.failed = true;
  // Another one may fail at this note and is dropped in the same way.
  for (Listener& other : observers_) {
    notify_one(other, [&](RunObserver& observer) {
      observer.noted("an observer failed and is no longer notified: " + reason);
    });
  }
}

}  // namespace treadle::internal

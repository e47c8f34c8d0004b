#include "events/run_observers.h"

namespace treadle::internal {

void RunObservers::drop(Listener& listener, const std::string& reason) {
  listener.failed = true;
  for (Listener& other : observers_) {
    if (!other.failed)
      other.observer->noted("an observer failed and is no longer notified: " + reason);
  }
}

}  // namespace treadle::internal

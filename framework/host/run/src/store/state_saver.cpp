#include "store/state_saver.h"

#include <utility>

namespace treadle::internal {

void StateSaver::save(const StateDict& state, std::function<void(const StateDict&)> write) {
  lane_.expect_no_failure();
  // A copy that still waits is older than this one, and its memory is free now. One that is being
  // written keeps its own.
  if (!lane_.withdraw() && lane_.is_busy())
    newest_ = 1 - newest_;
  StateSnapshot& copy = copies_[newest_];
  copy.take(state);
  lane_.submit([&copy, write = std::move(write)] { write(copy.state()); });
}

void StateSaver::finish() {
  lane_.wait();
  lane_.expect_no_failure();
}

}  // namespace treadle::internal

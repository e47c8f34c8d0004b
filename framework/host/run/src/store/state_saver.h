#pragma once

#include <array>
#include <cstddef>
#include <functional>

#include "store/background_writer.h"
#include "store/state_snapshot.h"

namespace treadle::internal {

/// Saves one training's states while the training goes on: save() copies, the run's writer does the
/// rest.
///
/// Takes the memory of one copy, and of a second one as soon as a state comes while another is
/// being written. A third takes the place of the second, which is then never written. Belongs to
/// the training's thread.
class StateSaver {
 public:
  explicit StateSaver(BackgroundWriter& writer) : lane_(writer) {}

  /// Returns when `state` has been copied; `write` gets the copy on the writer's thread. Throws
  /// what an earlier one threw.
  void save(const StateDict& state, std::function<void(const StateDict&)> write);

  /// Waits until everything is written. Throws what writing threw.
  void finish();
  /// The same, and keeps the failure for the next call.
  void wait() { lane_.wait(); }
  /// Throws what writing threw. Costs a load.
  void expect_no_failure() const { lane_.expect_no_failure(); }

 private:
  std::array<StateSnapshot, 2> copies_;
  std::size_t newest_ = 0;
  BackgroundWriter::Lane lane_;  // last: its work uses the copies
};

}  // namespace treadle::internal

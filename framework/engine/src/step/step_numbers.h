#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <treadle/core/training/parameter_arena.h>
#include <treadle/engine/loss_totals.h>
#include <treadle/engine/training_step.h>

#include "grouped_update.h"

namespace treadle::engine {

/// The loss of one shard of a step. Without rows it has no part in the step.
struct ShardLoss {
  BatchLoss loss;
  std::int64_t rows = 0;
};

/// Totals of a step's losses, clipping of its gradients, and the update, in this order, which is
/// defined here alone. Two implementations: on a CPU the host reads every number at once; elsewhere
/// the numbers stay on the device until read() copies all of them together. One training thread.
class StepNumbers {
 public:
  virtual ~StepNumbers();

  /// The numbers of the step that comes. Everything after it, to the end of finish(), uses what is
  /// on the device alone, so that it can be recorded once and replayed with other numbers.
  virtual void begin(std::int64_t step, double rate) = 0;

  /// What the loss of the step is multiplied by, for its sum over `positions`: float64 [], on the
  /// device. finish() divides the gradients by it. Not called: 1.
  virtual at::Tensor scale_loss(std::int64_t positions) = 0;

  /// Clips the gradients of the arena and updates, unless the loss or a gradient is not finite.
  /// False when nothing was updated; on a device always true, see skip().
  virtual bool finish(std::span<const ShardLoss> shards) = 0;

  /// The numbers of all steps so far. Waits for the device where they are there.
  virtual const StepRecord& read() = 0;
  virtual bool is_read_at_once() const = 0;

  virtual void measure(TrainingStep::Measured measured) = 0;
  virtual void tolerate(std::int64_t most_in_a_row) = 0;
  /// Forgets everything but `skipped_in_a_row` and the scale of the loss.
  virtual void clear() = 0;
  /// Continues from a record that was saved.
  virtual void set(const StepRecord& record) = 0;
  /// True where the last step was skipped: bool [], on the device. Undefined on a CPU.
  virtual const at::Tensor& skip() const = 0;
  /// All that a step changes, by name, where it is on a device: the tensors themselves. Empty on a
  /// CPU.
  virtual std::vector<std::pair<std::string, at::Tensor>> memory() const = 0;
};

/// What the numbers are made from. All outlive them.
struct StepNumbersSetup {
  LossTotals totals;  ///< empty, for the losses of these steps
  ParameterArena& arena;
  GroupedUpdate& update;
  Clipping clipping;
  bool scales_loss = false;
  Timeline* timeline = nullptr;
};

/// How many steps in a row may be skipped, where `asked` were asked for.
inline std::int64_t tolerated_skips(const StepNumbersSetup& setup, std::int64_t asked) {
  return setup.scales_loss ? std::max(asked, LossScale::kMostSkips) : asked;
}

std::unique_ptr<StepNumbers> numbers_on_host(const StepNumbersSetup& setup);
std::unique_ptr<StepNumbers> numbers_on_device(const StepNumbersSetup& setup);

}  // namespace treadle::engine

#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include <treadle/core/parameter_arena.h>
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

  /// Clips the gradients of the arena and updates, unless the loss or a gradient is not finite.
  /// False when nothing was updated; on a device always true, see skip().
  virtual bool finish(std::span<const ShardLoss> shards, std::int64_t step, double rate) = 0;

  /// The numbers of all steps so far. Waits for the device where they are there.
  virtual const StepRecord& read() = 0;
  virtual bool is_read_at_once() const = 0;

  virtual void measure(TrainingStep::Measured measured) = 0;
  virtual void tolerate(std::int64_t most_in_a_row) = 0;
  /// Forgets everything but `skipped_in_a_row`.
  virtual void clear() = 0;
  /// Continues from a record that was saved.
  virtual void set(const StepRecord& record) = 0;
  /// True where the last step was skipped: bool [], on the device. Undefined on a CPU.
  virtual const at::Tensor& skip() const = 0;
};

/// What the numbers are made from. All outlive them.
struct StepNumbersSetup {
  const Objective& objective;
  ParameterArena& arena;
  GroupedUpdate& update;
  Clipping clipping;
  Timeline* timeline = nullptr;
};

std::unique_ptr<StepNumbers> numbers_on_host(const StepNumbersSetup& setup);
std::unique_ptr<StepNumbers> numbers_on_device(const StepNumbersSetup& setup);

}  // namespace treadle::engine

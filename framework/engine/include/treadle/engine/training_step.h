#pragma once

#include <cstdint>

#include <treadle/core/loss.h>
#include <treadle/core/model.h>
#include <treadle/core/optimizer.h>
#include <treadle/core/parameter_arena.h>

namespace treadle::engine {

/// Bounds on gradients before an update; 0 means none.
struct Clipping {
  double norm = 0;   ///< scale all gradients so that their joint L2 norm is at most this
  double value = 0;  ///< clamp each element to [-value, value], before the norm
};

/// One training's model, gradients and optimizer memory, and the step that ties them: forward, backward, clip,
/// update. The one place that knows the order of these things.
///
/// The loss' sum is back-propagated and divided by its weight once, in the update, so ragged batches
/// and weights are exact. One training thread.
class TrainingStep {
 public:
  /// All must outlive the step. Moves the model's parameters into an arena.
  TrainingStep(Model& model, const Loss& loss, const Optimizer& optimizer,
               std::size_t output_count = 1, Clipping clipping = {});
  ~TrainingStep();

  /// Trains on one batch. Random operators draw from `seed`. `step` counts updates from 1. Returns false, and does
  /// not update, when the gradients or the loss are not finite.
  bool run(const Batch& batch, std::int64_t step, double learning_rate, std::uint64_t seed);

  /// Sum and weight of the loss over all batches since the last clear_totals(), added in order.
  double loss_sum() const { return loss_sum_; }
  double loss_weight() const { return loss_weight_; }
  void set_totals(double sum, double weight);
  void clear_totals() { set_totals(0, 0); }

  ParameterArena& arena() { return arena_; }
  OptimizerSlots& slots() { return slots_; }

 private:
  double clip(double scale);

  Model& model_;
  const Loss& loss_;
  const Optimizer& optimizer_;
  std::size_t output_count_;
  Clipping clipping_;
  ParameterArena arena_;
  OptimizerSlots slots_;
  Outputs outputs_;
  ForwardContext context_;
  double loss_sum_ = 0;
  double loss_weight_ = 0;
};

}  // namespace treadle::engine

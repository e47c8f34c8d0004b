#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <treadle/core/gradient_strategy.h>
#include <treadle/core/metric_computer.h>
#include <treadle/core/model.h>
#include <treadle/core/objective.h>
#include <treadle/core/optimizer.h>
#include <treadle/core/parameter_arena.h>
#include <treadle/core/timeline.h>
#include <treadle/engine/loss_totals.h>

namespace treadle::engine {

class GroupedUpdate;

/// Bounds on gradients before an update; 0 means none.
struct Clipping {
  double norm = 0;   ///< scale all gradients so that their joint L2 norm is at most this
  double value = 0;  ///< clamp each element to [-value, value], before the norm
};

/// How a step is made. What it points to must outlive the step.
struct StepOptions {
  Clipping clipping = {};
  const GradientStrategy* gradients = nullptr;  ///< null: back-propagation in one piece
  std::vector<Model*> replicas = {};            ///< one for each shard but the first
  std::vector<ParameterGroup> groups = {};      ///< parameters that are not the optimizer's
  Timeline* timeline = nullptr;                 ///< null: time is not measured
};

/// One training's model, gradients and optimizer memory, and the step that ties them: forward,
/// backward, clip, update. The only place that defines their order.
///
/// The objective's sum is back-propagated and divided by its weight once, in the update, so ragged
/// batches, padding and weights are exact.
///
/// With replicas a batch is cut into as many shards as there are models, all but equal in rows.
/// They run at once, as a flow graph: forward and backward of each → gradients added in the order
/// of the shards → clip and update. The replicas' parameters are the model's own, their gradients
/// are not. The result depends on the number of shards and never on the number of workers. Batch
/// normalization sees the rows of its shard; the first shard's running statistics are the model's.
/// One training thread, inside ThreadBudget::run() when there are replicas.
class TrainingStep {
 public:
  /// Moves the model's parameters, and the replicas' gradients, into arenas.
  TrainingStep(Model& model, const Objective& objective, const Optimizer& optimizer,
               StepOptions options = {});
  ~TrainingStep();

  /// Trains on one batch. Random operators draw from `seed`, those of a further shard from a stream
  /// made of it. `step` counts updates from 1. Returns false, and does not update, when the
  /// gradients or the loss are not finite. When shards throw, what the first of them threw comes
  /// out, after all have ended.
  bool run(const Batch& batch, std::int64_t step, double learning_rate, std::uint64_t seed);

  /// The loss of all batches since the last clear_totals(), added in order. A batch whose loss is
  /// not finite is left out.
  const LossTotals& totals() const { return totals_; }
  /// Clears totals(), the values that the model logged, and the mean of gradient norms.
  void clear_totals();

  /// Further results of each step, if requested.
  struct Measured {
    bool batch_loss = false;
    bool gradient_norm = false;
  };
  void measure(Measured measured) { measured_ = measured; }
  /// The loss of the last batch alone.
  double batch_loss() const { return batch_totals_.value(); }
  /// The L2 norm of the last step's gradients before clipping, and its mean over the steps since
  /// the last clear_totals() that were not skipped.
  double gradient_norm() const { return gradient_norm_; }
  double mean_gradient_norm() const;

  /// The means of what the model logged since then, over the forwards of all shards, added in their
  /// order; behind them, each term of the loss where there are several, and auxiliary terms.
  std::vector<MetricValue> logged_means() const;
  /// The sums behind totals() and logged_means(): a checkpoint within an epoch needs them.
  StateDict sums() const;
  void set_sums(const StateDict& sums);

  /// The model's recurrent state, of each shard: a checkpoint needs it. Set an empty one where a
  /// new stream of batches begins.
  StateDict model_state() const;
  void set_model_state(const StateDict& state);

  std::size_t shards() const;
  ParameterArena& arena() { return arena_; }
  /// The state of the optimizers.
  Stateful& slots();

 private:
  class Shard;
  class ShardGraph;

  double clip(double scale);
  void measure_norm(const at::Tensor& gradients, double scale);

  Model& model_;
  const Objective& objective_;
  const Clipping clipping_;
  Timeline* const timeline_;
  ParameterArena arena_;
  std::unique_ptr<GroupedUpdate> update_;
  std::vector<std::unique_ptr<Shard>> shards_;  // the first is the model's
  std::unique_ptr<ShardGraph> graph_;           // null: one shard
  LossTotals totals_;
  Measured measured_;
  LossTotals batch_totals_;
  double gradient_norm_ = 0;
  double sum_of_norms_ = 0;
  std::int64_t norms_ = 0;
};

}  // namespace treadle::engine

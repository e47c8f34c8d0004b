#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <treadle/core/devices/device_backend.h>
#include <treadle/core/history/timeline.h>
#include <treadle/core/model/model.h>
#include <treadle/core/precision/precision.h>
#include <treadle/core/training/gradient_strategy.h>
#include <treadle/core/training/objective.h>
#include <treadle/core/training/optimizer.h>
#include <treadle/core/training/parameter_arena.h>
#include <treadle/core/validation/metric_computer.h>
#include <treadle/engine/loss_scale.h>
#include <treadle/engine/loss_totals.h>
#include <treadle/engine/step_rows.h>

namespace treadle::engine {

class CapturedSteps;
class GroupedUpdate;
class ShardExchange;
class ShardGraph;
class ShardGroup;
class StepNumbers;
class StepShard;
class WeightAverage;
struct ShardLoss;
struct StepNumber;

/// Bounds on gradients before an update; 0 means none.
struct Clipping {
  double norm = 0;   ///< scale all gradients so that their joint L2 norm is at most this
  double value = 0;  ///< clamp each element to [-value, value], before the norm
};

/// How a step is made. All pointers must outlive the step.
struct StepOptions {
  Clipping clipping = {};
  const GradientStrategy* gradients = nullptr;  ///< null: back-propagation in one piece
  std::vector<Model*> replicas = {};            ///< one for each shard here but the first
  std::vector<ParameterGroup> groups = {};      ///< parameters that are not the optimizer's
  Timeline* timeline = nullptr;                 ///< null: time is not measured
  /// kTensors: every number of a step stays a tensor, as on a device, also on a CPU.
  ParameterView::Path path = ParameterView::Path::kFastest;
  Precision precision = {};
  /// Of the model's device: steps are recorded and replayed (captured_steps.h); null: each is
  /// carried out. The results are the same.
  const DeviceBackend* capture = nullptr;
  /// Of the processes that share the shards; null: all shards are here.
  ShardGroup* group = nullptr;
  /// The losses of StepTask that steps may have instead of the objective, by name.
  std::vector<std::string> losses = {};
};

/// Loss and parameters of a step, where they are not the objective and all parameters. Such a
/// step is never captured, and none is after it.
struct StepTask {
  const LossFunction* loss = nullptr;  ///< null: the objective
  std::string_view name = {};          ///< of the loss, among StepOptions::losses
  /// By segment of the arena; null: all. Gradients of the others count nowhere.
  const std::vector<bool>* parameters = nullptr;
  /// The weights after it are those of the training's step, which an average may want.
  bool is_averaged = true;
};

/// Results of the steps since the last clear_totals(), on the host.
struct StepRecord {
  /// `empty`: totals for such losses.
  explicit StepRecord(const LossTotals& empty) : totals(empty), batch(empty) {}
  static constexpr std::int64_t kMostListed = 32;

  /// Starts anew; steps skipped in a row and the scale of the loss go on.
  void clear();
  void note_skipped(std::int64_t step);

  LossTotals totals;         ///< of all batches whose loss was finite, added in order
  LossTotals batch;          ///< of the last batch, where it is measured
  double gradient_norm = 0;  ///< L2, of the last step before clipping, where it is measured
  double sum_of_norms = 0;   ///< over the steps whose norm was finite
  std::int64_t norms = 0;
  /// Steps that changed nothing, because the loss or a gradient was not finite.
  std::int64_t skipped = 0;
  std::vector<std::int64_t> skipped_at = {};  ///< the first kMostListed of them
  std::int64_t skipped_in_a_row = 0;          ///< the last ones, also from before
  /// The first step at which more were skipped in a row than is tolerated; 0: none. No later step
  /// on a device changes anything.
  std::int64_t diverged_at = 0;
  LossScale loss_scale = {};  ///< where the precision has one
};

/// One training's model, gradients and optimizer memory, and the step that ties them: forward,
/// backward, clip, update. The only place that defines their order.
///
/// The objective's sum is back-propagated and divided by its weight once, in the update, so ragged
/// batches, padding and weights are exact.
///
/// With replicas a step has as many shards as there are models, all but equal in rows. They run at
/// once, as a flow graph: forward and backward of each → gradients added in the order
/// of the shards → clip and update. The replicas' parameters are the model's own, their gradients
/// are not. The result depends on the number of shards and never on the number of workers. Batch
/// normalization sees the rows of its shard; the first shard's running statistics are the model's.
/// Float8Scales are of the values of all shards.
///
/// With a group, this process has the shards ShardGroup::own(), and each step ends with the same
/// numbers in all processes (shard_exchange.h). All processes then call together
/// the functions that need all shards: logged_means(), numbers(), model_state().
/// One training thread, inside ThreadBudget::run() when there are replicas.
class TrainingStep {
 public:
  /// Moves the model's parameters, and the replicas' gradients, into arenas.
  TrainingStep(Model& model, const Objective& objective, const Optimizer& optimizer,
               StepOptions options = {});
  ~TrainingStep();

  /// Trains on one batch. Random operators draw from `seed`, those of a further shard from a stream
  /// made of it. `step` counts updates from 1. Nothing is updated when the gradients or the loss
  /// are not finite; the result is then false. On a device the result is always true, because the
  /// host does not wait: record() counts the skipped steps. When shards throw, what the first of
  /// them threw comes out, after all have ended.
  ///
  /// `group_rates`: one for each of StepOptions::groups; empty: all in proportion to
  /// `learning_rate`, by the rates of their optimizers.
  bool run(const StepRows& rows, std::int64_t step, double learning_rate, std::uint64_t seed,
           std::span<const double> group_rates = {}, const StepTask& task = {});
  /// The same of a batch that is not cut into shards yet, and is whole in every process.
  bool run(Batch batch, std::int64_t step, double learning_rate, std::uint64_t seed,
           std::span<const double> group_rates = {}, const StepTask& task = {}) {
    return run(shards_of(std::move(batch)), step, learning_rate, seed, group_rates, task);
  }

  /// Of the steps for the objective. Waits for the device where the numbers are there, and reads
  /// all of them at once.
  const StepRecord& record() const;
  /// Of those for one of StepOptions::losses.
  const StepRecord& record(std::string_view loss) const;
  /// Whether record() never waits.
  bool is_read_at_once() const;
  /// Adds the weights after each step that was not skipped to an average that outlives this.
  void average_into(WeightAverage& average) { average_ = &average; }
  /// The same after step `step` of several parts, none of which is averaged by itself.
  void average_after(std::int64_t step);
  /// Whether an optimizer evaluates other weights than it steps with (EvaluationWeights).
  bool has_evaluation_weights() const;
  /// All parameters with those: a new tensor [arena().size()].
  at::Tensor evaluation_weights() const;
  /// Steps that were replayed rather than carried out.
  std::int64_t replayed() const;
  /// Why steps are not captured although they should be; empty where they are.
  std::string why_not_captured() const;
  /// How many steps in a row may be skipped before the training counts as diverged.
  void tolerate_skipped(std::int64_t most_in_a_row);

  /// record().totals
  const LossTotals& totals() const { return record().totals; }
  /// Clears the record, and the values that the model logged.
  void clear_totals();

  /// Further results of each step, if requested.
  struct Measured {
    bool batch_loss = false;
    bool gradient_norm = false;
  };
  void measure(Measured measured);
  /// The mean of the gradient norms in the record.
  double mean_gradient_norm() const;

  /// The means of what the model logged since then, over the forwards of all shards, added in their
  /// order; behind them, each term of the loss where there are several, auxiliary terms, and each
  /// of StepOptions::losses as "loss.NAME".
  std::vector<MetricValue> logged_means() const;
  /// The record, and the sums behind logged_means(): a checkpoint needs them.
  StateDict numbers() const;
  void set_numbers(const StateDict& numbers);

  /// The model's recurrent state, of each shard: a checkpoint needs it. Set an empty one where a
  /// new stream of batches begins.
  StateDict model_state() const;
  void set_model_state(const StateDict& state);

  std::size_t shards() const;
  ParameterArena& arena() { return arena_; }
  c10::Device device() const { return arena_.parameters().device(); }
  /// The state of the optimizers.
  Stateful& slots();

 private:
  class Repeated;

  void begin(const StepNumber& number);
  bool work(const StepRows& rows);
  Objective::Scales scales_of(const StepRows& rows, std::exception_ptr& error);
  void run_shards(const StepRows& rows, std::exception_ptr error);
  std::size_t first_shard() const;
  StepRows shards_of(Batch batch) const;
  StateDict of_all_shards(StateDict own) const;
  StateDict logged_by_shards() const;
  bool finish();
  StepNumbers& numbers_of(const StepTask& task) const;
  void advance_float8_scales();

  Model& model_;
  const Objective& objective_;
  const Precision precision_;
  Timeline* const timeline_;
  ShardGroup* const group_;  // null: all shards are here
  ParameterArena arena_;
  std::unique_ptr<GroupedUpdate> update_;
  std::vector<std::unique_ptr<StepShard>> shards_;  // those that are here; the first is the model's
  std::unique_ptr<ShardGraph> graph_;               // null: one shard
  std::unique_ptr<ShardExchange> exchange_;         // null: all shards are here
  std::unique_ptr<StepNumbers> numbers_;
  std::map<std::string, std::unique_ptr<StepNumbers>, std::less<>> of_losses_;
  std::vector<ShardLoss> losses_;  // of the shards of a step
  WeightAverage* average_ = nullptr;
  Measured is_measured_ = {};
  bool needs_weights_ = false;          // of the whole step, where it has several shards
  StepTask task_ = {};                  // of the step
  StepNumbers* numbers_now_ = nullptr;  // of the step
  std::unique_ptr<StepNumber> number_;  // of the step
  std::unique_ptr<Repeated> repeated_;  // null: steps are not captured
  std::unique_ptr<CapturedSteps> captured_;
  std::string why_not_captured_;  // because the device cannot
};

}  // namespace treadle::engine

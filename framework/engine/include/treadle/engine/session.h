#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <treadle/base/duration.h>
#include <treadle/core/data/batch_stream.h>
#include <treadle/core/devices/device_backend.h>
#include <treadle/core/training/learning_rate_schedule.h>
#include <treadle/core/training/training_callback.h>
#include <treadle/core/training/training_workflow.h>
#include <treadle/core/validation/metric_computer.h>
#include <treadle/engine/batch_preparation.h>
#include <treadle/engine/divided_source.h>
#include <treadle/engine/run_context.h>
#include <treadle/engine/shard_group.h>
#include <treadle/engine/training_step.h>

namespace treadle::engine {

/// Rows with a name: see TrainingSession.
struct NamedRows {
  std::string name;
  BatchSource* training = nullptr;    ///< of a part that was set aside: prepared to train on
  BatchSource* evaluation = nullptr;  ///< in the order of the data, prepared like validation rows
};

/// Everything that one training works with. All pointers outlive the call. The model's device
/// is the training's: batches are moved there.
struct SessionSetup {
  Model* model = nullptr;
  const Objective* objective = nullptr;
  const Optimizer* optimizer = nullptr;
  const LearningRateSchedule* schedule = nullptr;
  BatchSource* training = nullptr;
  /// The same as `training`, in steps cut into as many shards as there are in all processes, of
  /// which this one then prepares its own alone. Null: a batch is prepared whole, and cut after.
  DividedSource* shards = nullptr;
  BatchSource* validation = nullptr;  ///< null when every row trains
  /// Rows to learn the names of the metrics from, prepared like validation rows, for a loop that
  /// evaluates its batches itself. Null with validation rows, or without metrics.
  BatchSource* example = nullptr;
  /// Of "training", which has an `evaluation` alone, and of each of LoopNeeds::parts.
  std::vector<NamedRows> rows = {};
  const GroupNames* group_names = nullptr;  ///< null: groups are known by their numbers
  std::vector<TargetMetric> metrics = {};   ///< started; of the rows that are evaluated
  /// See EvaluationSetup::preparation. The sources are made with it.
  const BatchPreparation* preparation = nullptr;
  /// Called in this order. Each belongs to this training alone.
  std::vector<TrainingCallback*> callbacks = {};

  /// Nothing: until something stops the training.
  std::optional<std::int64_t> epochs = 1;
  /// Ends the training after so many steps, which may be in the middle of an epoch.
  std::optional<std::int64_t> max_steps = std::nullopt;
  /// See TrainingControl::is_refit().
  bool is_refit = false;
  /// Evaluate after every so many epochs, and after the last.
  std::int64_t evaluate_every = 1;

  Clipping clipping = {};
  const GradientStrategy* gradients = nullptr;  ///< null: back-propagation in one piece
  std::vector<Model*> replicas = {};            ///< one for each shard here but the first
  std::vector<ParameterGroup> groups = {};      ///< parameters that are not `optimizer`'s

  /// Of the processes that share the shards of a step; null: this one has all of them.
  ShardGroup* group = nullptr;

  Duration checkpoint_every{30, Duration::Unit::kSeconds};
  int keep_checkpoints = 2;
  Timeline* timeline = nullptr;  ///< null: time is not measured
  /// Of the model's device, whose idle time is measured; null: it is not.
  const DeviceBackend* backend = nullptr;
  Precision precision = {};
  /// See StepOptions::path.
  ParameterView::Path path = ParameterView::Path::kFastest;
  const DeviceBackend* capture = nullptr;  ///< see StepOptions::capture
};

/// How a training went. Losses are means over rows (sum / weight).
struct TrainingResult {
  Number final_loss;              ///< of the last epoch: validation loss, else training loss
  Number best_loss;               ///< of the best epoch
  std::int64_t best_epoch = 0;    ///< from 1; 0: no epoch has a number to choose by
  std::int64_t total_epochs = 0;  ///< trained
  double training_time_seconds = 0;
  /// The training ended with the weights of best_epoch, which so means something for a refit.
  bool selects_best = false;
  std::string chosen_by;     ///< the number that best_epoch is the best by, where selects_best
  bool has_average = false;  ///< those weights are an average over the steps before
  std::string stop_reason;   ///< empty when all epochs were trained
  /// Steps that changed nothing because the loss or a gradient was not finite.
  std::int64_t skipped_steps = 0;
  std::vector<std::int64_t> skipped_at;  ///< the first StepRecord::kMostListed of them
  std::int64_t replayed_steps = 0;       ///< those that a device replayed, since the last start
  std::string why_not_captured;          ///< empty: steps were, or nobody asked for it
};

struct ValidationResult {
  Number loss;
  MetricResult metrics;
  std::int64_t sample_count = 0;
  double validation_time_seconds = 0;
};

/// Trains with `loop` from the first step, or from context.resume_state(), to the end. The model
/// then has the weights that the training ends with, and is in eval mode.
///
/// The same setup and random streams give the same bits, however often the training was stopped and
/// resumed on the way. Throws Interrupted after saving when a stop is requested; TrainingError when
/// the loss or a gradient is no longer finite. Inside ThreadBudget::run() where there are replicas.
/// [training thread]
TrainingResult train(TrainingWorkflow& loop, const SessionSetup& setup, RunContext& context);

/// Evaluates the model on the validation rows. Does not change it. Expects validation rows.
ValidationResult validate(const SessionSetup& setup, std::stop_token stop);

}  // namespace treadle::engine

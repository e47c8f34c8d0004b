#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include <treadle/base/component.h>
#include <treadle/core/batch_stream.h>
#include <treadle/core/learning_rate_schedule.h>
#include <treadle/core/metric_computer.h>
#include <treadle/core/model.h>
#include <treadle/core/objective.h>
#include <treadle/core/optimizer.h>
#include <treadle/core/run_context.h>
#include <treadle/core/timeline.h>
#include <treadle/core/transform.h>

namespace treadle {

/// How a workflow wants its rows cut into batches; asked for before the sources are made.
struct BatchPlan {
  std::int64_t training_batch = 32;
  std::int64_t evaluation_batch = 1024;  ///< at most: fewer rows where they are large
  bool shuffle = true;
  bool drop_last = false;
};

/// Everything one training works with. Made by the host, which owns it all and outlives the call.
struct TrainingTask {
  Model* model = nullptr;
  const Objective* objective = nullptr;
  const Optimizer* optimizer = nullptr;
  const LearningRateSchedule* schedule = nullptr;
  BatchSource* training = nullptr;
  BatchSource* validation = nullptr;  ///< null when every row trains
  std::vector<TargetMetric> metrics;  ///< started, for the validation rows
  /// Fitted; already in the sources; for inverting predictions.
  std::vector<const Transform*> transforms;
  /// Not 0: train exactly this many epochs, without early stopping or best-selection (a refit).
  std::int64_t fixed_epochs = 0;
  /// Further models like `model`, one for each shard of a step but the first; empty: a step is one
  /// piece.
  std::vector<Model*> replicas;
  /// Parameters that are not `optimizer`'s. The schedule is for `optimizer`; the rates of the
  /// groups follow in proportion.
  std::vector<ParameterGroup> groups;
  /// Where the time is counted; null: nowhere.
  Timeline* timeline = nullptr;
};

/// How a training went. Losses are means over rows (sum / weight).
struct TrainingResult {
  double final_loss = 0;          ///< of the last epoch: validation loss, else training loss
  double best_loss = 0;           ///< of the best epoch
  std::int64_t best_epoch = 0;    ///< from 1
  std::int64_t total_epochs = 0;  ///< trained
  double training_time_seconds = 0;
  /// Early stopping or best-selection was active: best_epoch means something for a refit.
  bool selects_best = false;
  std::string stop_reason;  ///< empty when all epochs were trained
};

struct ValidationResult {
  double loss = 0;
  MetricResult metrics;
  std::int64_t sample_count = 0;
  double validation_time_seconds = 0;
};

/// The training loop: how a model, a loss, an optimizer and data become a trained model.
///
/// One object per training. train() leaves the chosen weights (best or last) in the model. What the
/// workflow must remember across a crash it saves through the context; train() on a fresh object
/// continues from context.resume_state().
class TrainingWorkflow : public Component {
 public:
  static constexpr std::string_view kInterface = "treadle.training/0";

  ~TrainingWorkflow() override;

  /// How to cut batches. A function of the configuration alone.
  BatchPlan batch_plan() const;
  /// Planned epochs, before early stopping. A function of the configuration alone.
  std::int64_t planned_epochs() const;

  /// Trains. Throws Interrupted after saving when a stop is requested; TrainingError naming epoch
  /// and step when the loss stops being a number. [training thread]
  TrainingResult train(TrainingTask& task, RunContext& context);

  /// Judges the model on task.validation. Does not change the model. [training thread]
  ValidationResult validate(TrainingTask& task, RunContext& context);

 private:
  virtual BatchPlan do_batch_plan() const = 0;
  virtual std::int64_t do_planned_epochs() const = 0;
  virtual TrainingResult do_train(TrainingTask& task, RunContext& context) = 0;
  virtual ValidationResult do_validate(TrainingTask& task, RunContext& context) = 0;
};

}  // namespace treadle

#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <treadle/core/data/sampler.h>
#include <treadle/core/data/transform.h>
#include <treadle/core/model/model.h>
#include <treadle/core/training/gradient_strategy.h>
#include <treadle/core/training/learning_rate_schedule.h>
#include <treadle/core/training/objective.h>
#include <treadle/core/training/optimizer.h>
#include <treadle/core/training/training_callback.h>
#include <treadle/core/training/training_workflow.h>
#include <treadle/core/validation/cross_validator.h>
#include <treadle/core/validation/metric_computer.h>
#include <treadle/engine/batch_pipeline.h>
#include <treadle/host/run/runtime.h>

#include "data/dataset.h"
#include "data/evaluated_rows.h"
#include "document/document_slots.h"
#include "document/training_plan.h"
#include "evaluation/metric.h"
#include "evaluation/metric_breakdown.h"
#include "resources/run_device.h"

namespace treadle::internal {

/// A group of the document's optimizer.
struct OptimizerGroup {
  std::unique_ptr<Optimizer> optimizer;
  std::vector<std::string> parameters;                       ///< names
  std::unique_ptr<LearningRateSchedule> schedule = nullptr;  ///< null: it has none of its own
};

/// A file that a training starts from, instead of random weights: all of it, or what is below the
/// node `from`, for the model's node `to`.
struct GivenWeights {
  std::filesystem::path path;
  bool is_strict = true;
  std::string from = {};
  std::string to = {};
};

/// Makes the components that one resolved document names, for the data of the run. What the
/// document leaves open is filled in here: device, task, loss, metrics, shards. Several documents
/// may have a factory each over one dataset.
class DocumentComponents {
 public:
  /// The choices made for the user are in choices(). Borrows both. `keeps_predictions`: the metrics
  /// of the report keep what is predicted for rows that validate (CollectedPredictions).
  DocumentComponents(const Runtime& runtime, ResolvedWorkflow workflow, const Dataset& dataset,
                     bool keeps_predictions = false);

  /// Splits the rows.
  void make_plan();
  /// The rows to split.
  SplitRequest split_request() const;

  /// Whether the document leaves the batch size open: "auto". Until it is set, it is 32.
  bool has_open_batch_size() const;
  void set_batch_size(std::int64_t rows);
  /// Afterwards the document has it; `why` is noted among the choices.
  void settle_batch_size(std::int64_t rows, const std::string& why);

  const ResolvedWorkflow& workflow() const { return workflow_; }
  const Dataset& dataset() const { return dataset_; }
  const RowReader& rows() const { return dataset_.rows(); }
  /// How the training rows are read where that is only possible in order; nothing: from rows().
  std::optional<engine::StreamInput> stream() const;
  /// The document's losses, as they are before they have seen rows; see FittedLosses.
  const std::vector<Objective::Term>& loss_terms() const { return terms_; }
  const ValidationPlan& plan() const { return plan_; }
  /// The first that validates: with inner folds, the first of those.
  const Fold& first_fold() const {
    const Fold& fold = plan_.folds.front();
    return fold.inner.empty() ? fold : fold.inner.front();
  }
  /// With what the report lacks, and why. Makes the metrics of the report.
  std::vector<std::string> choices() const;
  /// Pieces of a training batch.
  std::size_t shards() const;
  /// What records training steps; null: they are carried out one by one.
  const DeviceBackend* capture() const;
  const Precision& precision() const { return precision_; }
  /// How rows are prepared for the models of this run.
  engine::PreparationOptions preparation() const {
    return {.dtype = precision_.data(),
            .for_device = !device_.device().is_cpu() || device_.info.tensors_only};
  }
  /// Where models are trained and evaluated. Transforms and metrics work on the CPU.
  const RunDevice& device() const { return device_; }
  const DataSpec& data_spec() const { return spec_; }
  /// "classification", "regression", …; of several targets, one after the other.
  std::string task() const;

  // Fresh objects, one set a training.
  std::vector<std::unique_ptr<Transform>> make_transforms() const;
  std::shared_ptr<Model> make_model(const ModelSpec& spec) const;
  /// The document's; none when it names none.
  std::vector<GivenWeights> given_weights() const;
  std::unique_ptr<Optimizer> make_optimizer() const;
  /// The parameters that the document gives an optimizer of their own, with it.
  std::vector<OptimizerGroup> make_optimizer_groups(const Model& model) const;
  std::unique_ptr<LearningRateSchedule> make_schedule() const;
  TrainingPlan training_plan() const { return training_plan_of(runtime_, workflow_); }
  std::unique_ptr<TrainingWorkflow> make_training() const;
  /// Null when the document names none.
  std::unique_ptr<Sampler> make_sampler() const;
  /// Null when the document names none.
  std::unique_ptr<GradientStrategy> make_gradients() const;
  /// In the order in which they are called.
  std::vector<std::unique_ptr<TrainingCallback>> make_callbacks() const;
  /// The document's metrics: each for the target it names, or for every target it works on.
  std::vector<Metric> make_metrics() const;
  /// What the report shows beside them (confusion matrix, residuals), as far as plugins offer it
  /// and it can be had for such targets.
  std::vector<Metric> make_report_metrics() const;
  /// The document's metrics by step and by series, and some forecasts, as far as `data` has them:
  /// they are made for its rows, and borrow from it.
  std::vector<Metric> make_breakdowns(const EvaluatedRows& data) const;

  /// What a model must fit, given the data as the transforms leave it. Throws DataError when a
  /// column may still have missing values.
  ModelSpec model_spec(const DataSpec& transformed) const;

 private:
  template <typename Interface>
  std::unique_ptr<Interface> make(std::string_view key) const {
    return make_in<Interface>(runtime_, workflow_.slot(key), key);
  }
  /// With its warm-up, where it has one.
  std::unique_ptr<LearningRateSchedule> schedule_in(const Config& slot) const;
  std::vector<Config> slots(std::string_view key) const { return slots_of(workflow_, key); }
  Metric started(std::unique_ptr<MetricComputer> metric, std::size_t target) const;
  std::vector<MetricBreakdown::Made> metrics_of_part(std::size_t target,
                                                     const TargetSpec& part) const;
  /// Adds a sentence to `left_out` for each that cannot be had.
  std::vector<Metric> make_report_metrics(std::vector<std::string>& left_out) const;
  std::unique_ptr<Optimizer> make_group_optimizer(const Config& slot, const Config& group) const;
  std::size_t target_of(const Config& slot) const;
  std::vector<std::size_t> targets_of_metric(const Config& slot) const;
  std::string metric_prefix(const TargetSpec& target) const;
  void settle();
  void settle_device();
  void settle_precision();
  void settle_task();
  void settle_slot(const std::string& key, const nlohmann::json& value);
  void settle_training();
  void settle_losses();
  void expect_each_target_has_a_loss() const;
  void expect_whole_batches() const;
  void settle_metrics();
  void settle_shards();
  std::shared_ptr<Model> tried_model() const;

  const Runtime& runtime_;
  ResolvedWorkflow workflow_;
  Precision precision_;
  RunDevice device_;
  const Dataset& dataset_;
  const bool keeps_predictions_;
  const DataSpec& spec_;
  std::vector<std::unique_ptr<Loss>> losses_;
  std::vector<Objective::Term> terms_;
  ValidationPlan plan_;
  std::vector<std::string> choices_;
};

}  // namespace treadle::internal

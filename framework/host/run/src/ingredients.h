#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <treadle/core/cross_validator.h>
#include <treadle/core/data_provider.h>
#include <treadle/core/gradient_strategy.h>
#include <treadle/core/learning_rate_schedule.h>
#include <treadle/core/metric_computer.h>
#include <treadle/core/model.h>
#include <treadle/core/objective.h>
#include <treadle/core/optimizer.h>
#include <treadle/core/training_callback.h>
#include <treadle/core/training_workflow.h>
#include <treadle/core/transform.h>
#include <treadle/engine/thread_budget.h>
#include <treadle/engine/training_step.h>
#include <treadle/host/run/runtime.h>

namespace treadle::internal {

/// A group of the document's optimizer.
struct OptimizerGroup {
  std::unique_ptr<Optimizer> optimizer;
  std::vector<std::string> parameters;  ///< names
};

/// A metric with the target it is computed for, started.
struct Metric {
  std::unique_ptr<MetricComputer> computer;
  std::size_t target = 0;
  TargetSpec spec = {};
  std::string prefix = {};

  TargetMetric view() const { return {computer.get(), target, spec, prefix}; }
};
std::vector<TargetMetric> views(const std::vector<Metric>& metrics);

/// Where a training starts from, instead of random weights.
struct GivenWeights {
  std::filesystem::path path;
  bool is_strict = true;
};

/// What the document's `training` asks for, whichever its loop is.
struct TrainingPlan {
  std::int64_t epochs = 1;
  std::int64_t batch_size = 32;
  std::int64_t evaluation_batch_size = 1024;  ///< at most: fewer rows where they are large
  std::int64_t evaluate_every = 1;            ///< epochs
  bool shuffle = true;
  bool drop_last = false;
  engine::Clipping clipping = {};
  Duration checkpoint_every;
  int keep_checkpoints = 2;
};

/// Makes the components a document names. What the document leaves open is filled in here once the
/// data has been seen.
class Ingredients {
 public:
  Ingredients(const Runtime& runtime, ResolvedWorkflow workflow);

  /// Opens the data and settles task, loss and metrics. The choices made for the user are in
  /// choices().
  void open_data();
  /// For a model trained earlier: what its data looked like, without the data.
  void recall_data(DataSpec spec);
  /// Splits the rows. Expects open_data().
  void make_plan();

  const ResolvedWorkflow& workflow() const { return workflow_; }
  const DataProvider& data() const { return *data_; }
  const RowReader& rows() const { return *rows_; }
  /// The document's losses, for targets as the transforms leave them. Borrows from this object.
  Objective make_objective(const DataSpec& transformed) const {
    return {terms_, transformed.targets};
  }
  const ValidationPlan& plan() const { return plan_; }
  const std::vector<std::string>& choices() const { return choices_; }
  /// Pieces of a training batch.
  std::size_t shards() const;
  c10::ScalarType dtype() const { return dtype_; }
  const DataSpec& data_spec() const { return spec_; }
  /// "classification", "regression", …; of several targets, one after the other.
  std::string task() const;

  // Fresh objects, one set a training.
  std::vector<std::unique_ptr<Transform>> make_transforms() const;
  std::shared_ptr<Model> make_model(const ModelSpec& spec) const;
  /// The document's; nothing when it names none.
  std::optional<GivenWeights> given_weights() const;
  std::unique_ptr<Optimizer> make_optimizer() const;
  /// The parameters that the document gives an optimizer of their own, with it.
  std::vector<OptimizerGroup> make_optimizer_groups(const Model& model) const;
  std::unique_ptr<LearningRateSchedule> make_schedule() const;
  TrainingPlan training_plan() const;
  std::unique_ptr<TrainingWorkflow> make_training() const;
  /// Null when the document names none.
  std::unique_ptr<GradientStrategy> make_gradients() const;
  /// In the order in which they are called.
  std::vector<std::unique_ptr<TrainingCallback>> make_callbacks() const;
  /// The document's metrics: each for the target it names, or for every target it works on.
  std::vector<Metric> make_metrics() const;
  /// What the report shows beside them (confusion matrix, residuals), as far as plugins offer it
  /// and it can be had for such targets.
  std::vector<Metric> make_report_metrics() const;
  std::vector<std::unique_ptr<RunObserver>> make_observers() const;

  /// What a model must fit, given the data as the transforms leave it. Throws DataError when a
  /// column may still have missing values.
  ModelSpec model_spec(const DataSpec& transformed) const;

 private:
  template <typename Interface>
  std::unique_ptr<Interface> make(std::string_view slot) const;
  template <typename Interface>
  std::unique_ptr<Interface> make_in(const Config& slot, std::string_view key) const;
  /// In a slot that has no keys of its own.
  template <typename Interface>
  std::unique_ptr<Interface> make_nested(const Config& slot) const;
  template <typename Interface>
  std::vector<std::unique_ptr<Interface>> make_each(std::string_view key) const;
  /// Those under a key of the document, which may have one or a list.
  std::vector<Config> slots(std::string_view key) const;
  Metric started(std::unique_ptr<MetricComputer> metric, std::size_t target) const;
  std::size_t target_of(const Config& slot) const;
  std::vector<std::size_t> targets_of_metric(const Config& slot) const;
  std::string metric_prefix(const TargetSpec& target) const;
  void settle();
  void settle_slot(const std::string& key, const nlohmann::json& value);
  void settle_losses();
  void expect_each_target_has_a_loss() const;
  void expect_whole_batches() const;
  void settle_metrics();
  void settle_shards();
  std::shared_ptr<Model> tried_model() const;

  const Runtime& runtime_;
  ResolvedWorkflow workflow_;
  c10::ScalarType dtype_ = at::kFloat;
  std::unique_ptr<DataProvider> data_;
  const RowReader* rows_ = nullptr;
  DataSpec spec_;
  std::vector<std::unique_ptr<Loss>> losses_;
  std::vector<Objective::Term> terms_;
  ValidationPlan plan_;
  std::vector<std::string> choices_;
};

/// The part of a slot that is the component's: without `use` and without the slot's own properties.
Config component_config(const Config& slot, std::string_view slot_key);

/// A saved run's data provider for another file: `data` replaces the parameter the component's
/// schema names in x-treadle-source.
std::unique_ptr<DataProvider> make_data_for(const Runtime& runtime,
                                            const ResolvedWorkflow& workflow,
                                            const std::filesystem::path& data);

/// The threads that the document's resources ask for.
engine::ThreadBudget budget_for(const ResolvedWorkflow& workflow);

c10::ScalarType dtype_of(const ResolvedWorkflow& workflow);

}  // namespace treadle::internal

#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <treadle/core/cross_validator.h>
#include <treadle/core/data_provider.h>
#include <treadle/core/loss.h>
#include <treadle/core/metric_computer.h>
#include <treadle/core/model.h>
#include <treadle/core/optimizer.h>
#include <treadle/core/training_workflow.h>
#include <treadle/core/transform.h>
#include <treadle/engine/thread_budget.h>
#include <treadle/host/run/runtime.h>

namespace treadle::internal {

/// A group of the document's optimizer.
struct OptimizerGroup {
  std::unique_ptr<Optimizer> optimizer;
  std::vector<std::string> parameters;  ///< names
};

/// Where a training starts from, instead of random weights.
struct GivenWeights {
  std::filesystem::path path;
  bool is_strict = true;
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
  const Loss& loss() const { return *loss_; }
  const ValidationPlan& plan() const { return plan_; }
  const std::vector<std::string>& choices() const { return choices_; }
  /// Pieces of a training batch.
  std::size_t shards() const;
  c10::ScalarType dtype() const { return dtype_; }
  const DataSpec& data_spec() const { return spec_; }
  bool is_classification() const { return spec_.target.kind == TargetKind::kClasses; }

  // Fresh objects, one set a training.
  std::vector<std::unique_ptr<Transform>> make_transforms() const;
  std::shared_ptr<Model> make_model(const ModelSpec& spec) const;
  /// The document's; nothing when it names none.
  std::optional<GivenWeights> given_weights() const;
  std::unique_ptr<Optimizer> make_optimizer() const;
  /// The parameters that the document gives an optimizer of their own, with it.
  std::vector<OptimizerGroup> make_optimizer_groups(const Model& model) const;
  std::unique_ptr<LearningRateSchedule> make_schedule() const;
  std::unique_ptr<TrainingWorkflow> make_training() const;
  /// The document's metrics, started.
  std::vector<std::unique_ptr<MetricComputer>> make_metrics() const;
  /// What the report shows beside them (confusion matrix, residuals), as far as plugins offer it.
  std::vector<std::unique_ptr<MetricComputer>> make_report_metrics() const;
  std::vector<std::unique_ptr<RunObserver>> make_observers() const;

  /// What a model must fit, given the data as the transforms leave it. Throws DataError when a
  /// column may still have missing values.
  ModelSpec model_spec(const DataSpec& transformed) const;

 private:
  template <typename Interface>
  std::unique_ptr<Interface> make(std::string_view slot) const;
  template <typename Interface>
  std::vector<std::unique_ptr<Interface>> make_each(std::string_view slot) const;
  void settle();
  void settle_loss();
  void settle_metrics();
  void settle_shards();

  const Runtime& runtime_;
  ResolvedWorkflow workflow_;
  c10::ScalarType dtype_ = at::kFloat;
  std::unique_ptr<DataProvider> data_;
  const RowReader* rows_ = nullptr;
  DataSpec spec_;
  std::unique_ptr<Loss> loss_;
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

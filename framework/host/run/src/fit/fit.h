#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <c10/core/Stream.h>

#include <treadle/core/training/adaptation.h>
#include <treadle/core/training/structure_search.h>
#include <treadle/engine/batch_pipeline.h>
#include <treadle/engine/session.h>
#include <treadle/host/run/checkpoint_store.h>

#include "components/document_components.h"
#include "components/fitted_losses.h"
#include "components/training_components.h"
#include "data/known_groups.h"
#include "evaluation/fitted_metrics.h"

namespace treadle::internal {

/// Which rows one training gets.
struct FitRows {
  RowList training;
  RowList validation;  ///< empty: every row trains
  /// Not 0: a refit of exactly so many epochs.
  std::int64_t fixed_epochs = 0;
  RowList test = {};  ///< empty: this training's model is not tested
  /// Rows to predict for output stages: training rows that are set aside, or, of a fold whose model
  /// is kept, the test rows of the run's model.
  RowList outputs = {};
};

/// The training that a Fit prepares.
struct FitOrder {
  FitId id;
  FitRows rows;
  Timeline* timeline = nullptr;
  /// Weights to begin with, instead of the document's.
  std::optional<StateDict> start_weights = {};
  /// The training ends with the epoch in which this has passed.
  std::optional<std::chrono::steady_clock::time_point> deadline = {};
  /// Of Fit::preprocessing(), for a training that goes on: restored instead of fitted. Null: it
  /// begins.
  const StateDict* preprocessing = nullptr;
  /// See RunOptions; null: this process has all shards.
  Communicator* communicator = nullptr;
};

/// Training rows that are set aside for the loop.
struct PartOfRows {
  std::string name;
  RowList rows;
  std::unique_ptr<engine::BatchPipeline> training = nullptr;
  std::unique_ptr<engine::BatchPipeline> evaluation = nullptr;
};

/// One training, prepared, with everything it owns: its transforms, fitted on its own rows, its
/// model, its streams of random numbers, and its stream of work on the device. Nothing is shared
/// with another fit but the raw data.
class Fit {
 public:
  /// Brings transforms, model, loop and sources to life. Borrows the components.
  Fit(const DocumentComponents& components, FitOrder order);
  ~Fit();
  Fit(const Fit&) = delete;
  Fit& operator=(const Fit&) = delete;

  const FitId& id() const { return id_; }
  const DocumentComponents& components() const { return components_; }
  const RandomStreams& random() const { return random_; }
  engine::TrainingResult train(engine::RunContext& context);
  /// Whether there is nothing to train.
  bool has_no_parameters() const { return model_->parameters().empty(); }
  bool has_validation_rows() const { return !rows_.validation.empty(); }
  /// On the validation rows, with the document's metrics and the report's. Expects validation rows.
  engine::ValidationResult validate(std::stop_token stop);

  /// On the test rows, with the same metrics, anew. Expects test rows, and that training is over.
  engine::ValidationResult test(std::stop_token stop);

  /// Predictions of the trained model for FitRows::outputs: a CollectedPredictions for each target.
  /// Expects such rows.
  std::vector<Metric> predict_for_outputs(std::stop_token stop);

  /// The windows of a loop that evaluates each batch before it trains on it; nothing for other
  /// loops.
  std::optional<AdaptationRecord> adaptation() const;

  /// The choices of a loop that searches structures of the model; empty for other loops.
  std::vector<StructureRecord> structures() const;
  /// See RecordsStructures.
  std::optional<std::int64_t> max_parameters() const;

  /// For the log of the run: how it began.
  const std::vector<std::string>& notes() const { return notes_; }

  Model& model() { return *model_; }
  /// Of the parameters in no group.
  const Optimizer& optimizer() const { return *optimizer_; }
  const std::vector<OptimizerGroup>& groups() const { return groups_; }
  const ModelSpec& model_spec() const { return model_spec_; }
  /// Transforms, fitted losses and data dictionaries.
  StateDict preprocessing() const;
  /// State of the document's metrics from the training rows.
  const FittedMetrics& fitted_metrics() const { return fitted_metrics_; }
  /// Whether the loss is in other units than the data's targets.
  bool transforms_targets() const;
  /// The report's metrics with their rows, so that folds can be put together: of the test rows
  /// where the fit has some.
  const std::vector<Metric>& report_metrics() const {
    return tested_metrics_.empty() ? report_metrics_ : tested_metrics_;
  }

 private:
  void prepare_transforms(const StateDict* saved);
  void prepare_losses(const StateDict* saved);
  void prepare_model(const FitOrder& order);
  void prepare_loop(const FitOrder& order);
  void prepare_metrics(const StateDict* saved);
  void open_training_rows();
  void open_evaluated_rows();
  void set_up();

  std::vector<const Transform*> transforms() const;
  RowList rows_to_fit() const;
  bool is_one_pass() const;
  RowList rows_beside_parts();
  void open_named_rows();
  engine::PipelineOptions to_evaluate() const;
  std::int64_t fewest_rows() const;
  void end_with_the_data();
  void load_given_weights(const std::optional<StateDict>& start_weights);
  void expect_whole_batches_of(const RowList& rows);
  void draw_weights_as_float32();
  void move_to_device();
  void finish_on_device() const;
  /// Gives metrics what they need of the training rows, to be shown `rows`.
  void ready(const std::vector<Metric>& metrics, const std::vector<Metric>& report_metrics,
             const RowList& rows) const;

  const DocumentComponents& components_;
  FitId id_;
  FitRows rows_;
  Timeline* const timeline_;
  const c10::Stream stream_;  // all work of this fit on its device
  RandomStreams random_;
  const TrainingPlan plan_;
  std::vector<std::unique_ptr<Transform>> transforms_;
  KnownGroups known_groups_;  // to the transforms
  engine::BatchPreparation preparation_;
  ModelSpec model_spec_;
  FittedLosses losses_;
  FittedMetrics fitted_metrics_;
  std::optional<Objective> objective_;
  std::shared_ptr<Model> model_;
  std::optional<engine::ShardGroup> group_;
  std::vector<std::shared_ptr<Model>> replicas_;  // for the shards of a step after the first, here
  std::unique_ptr<Optimizer> optimizer_;
  std::vector<OptimizerGroup> groups_;
  std::unique_ptr<LearningRateSchedule> schedule_;
  std::unique_ptr<TrainingWorkflow> loop_;
  std::unique_ptr<GradientStrategy> gradients_;
  std::vector<std::unique_ptr<TrainingCallback>> callbacks_;
  std::unique_ptr<Sampler> sampler_;
  std::unique_ptr<engine::BatchPipeline> training_;
  std::unique_ptr<engine::BatchPipeline> validation_;
  std::unique_ptr<engine::BatchPipeline> training_in_order_;
  RowList epoch_rows_;  // of the training rows, those that are not in parts_
  std::vector<PartOfRows> parts_;
  std::vector<Metric> metrics_;
  std::vector<Metric> report_metrics_;
  std::vector<Metric> tested_metrics_;  // the same, of test()
  engine::SessionSetup setup_;
  std::vector<std::string> notes_;
};

/// What `"execution": "auto"` decided for the model: "compiled", or "dynamic, because …". Empty
/// where nobody left it open.
std::string execution_choice(const Model& model);

/// Restores transforms from what Fit::preprocessing() gave.
void load_transforms(const std::vector<std::unique_ptr<Transform>>& transforms,
                     const StateDict& preprocessing);

}  // namespace treadle::internal

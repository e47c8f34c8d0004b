#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <treadle/core/data/transform.h>
#include <treadle/core/model/model.h>
#include <treadle/core/training/objective.h>
#include <treadle/core/validation/cross_validator.h>
#include <treadle/engine/batch_pipeline.h>
#include <treadle/host/run/runtime.h>

#include "components/document_losses.h"
#include "components/settled_workflow.h"
#include "components/target_defaults.h"
#include "data/dataset.h"
#include "document/training_plan.h"

namespace treadle::internal {

/// A settled document over the data of the run, and what all fits of it share: losses, the plan of
/// rows. Models, optimizers, metrics and other parts of a training are made anew for each fit, by
/// the functions here, of training_components.h and of document_metrics.h. Several documents may
/// have components over one dataset.
class DocumentComponents {
 public:
  /// Borrows both. `keeps_predictions`: the metrics of the report keep what is predicted for rows
  /// that validate (CollectedPredictions).
  DocumentComponents(const Runtime& runtime, SettledWorkflow settled, const Dataset& dataset,
                     bool keeps_predictions = false);
  /// Of a document that is settled first.
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

  const Runtime& runtime() const { return runtime_; }
  const ResolvedWorkflow& workflow() const { return settled_.workflow; }
  const Dataset& dataset() const { return dataset_; }
  const RowReader& rows() const { return dataset_.rows(); }
  /// How the training rows are read where that is only possible in order; nothing: from rows().
  std::optional<engine::StreamInput> stream() const;
  /// The document's losses, as they are before they have seen rows; see FittedLosses.
  const std::vector<Objective::Term>& loss_terms() const { return losses_.terms; }
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
  /// Records training steps; null: they are carried out one by one.
  const DeviceBackend* capture() const;
  const Precision& precision() const { return settled_.precision; }
  /// How rows are prepared for the models of this run.
  engine::PreparationOptions preparation() const {
    return {.dtype = settled_.precision.data(),
            .for_device = !settled_.device.device().is_cpu() || settled_.device.info.tensors_only};
  }
  /// Where models are trained and evaluated. Transforms and metrics work on the CPU.
  const RunDevice& device() const { return settled_.device; }
  const DataSpec& data_spec() const { return dataset_.spec(); }
  /// Whether the metrics of the report keep what is predicted: where somebody needs it, and of
  /// validated rows where it is little.
  bool keeps_predictions() const;
  /// Whether a stage of the document's outputs depends on groups, or on the models of folds.
  bool outputs_need_groups() const;
  bool outputs_need_folds() const;

  TrainingPlan training_plan() const { return training_plan_of(runtime_, settled_.workflow); }

  // Fresh objects, one set a training.
  std::vector<std::unique_ptr<Transform>> make_transforms() const;
  std::shared_ptr<Model> make_model(const ModelSpec& spec) const;
  /// The spec of a model for the data as the transforms leave it. Throws DataError when a
  /// column may still have missing values.
  ModelSpec model_spec(const DataSpec& transformed) const;

 private:
  const Runtime& runtime_;
  SettledWorkflow settled_;
  const Dataset& dataset_;
  const bool keeps_predictions_;
  const DocumentLosses losses_;
  ValidationPlan plan_;
};

}  // namespace treadle::internal

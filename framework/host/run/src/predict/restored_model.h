#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <treadle/core/components/state_dict.h>
#include <treadle/core/data/data_provider.h>
#include <treadle/core/data/sequence_provider.h>
#include <treadle/core/data/transform.h>
#include <treadle/core/model/model.h>
#include <treadle/core/training/objective.h>
#include <treadle/engine/batch_pipeline.h>
#include <treadle/engine/batch_preparation.h>
#include <treadle/engine/evaluation.h>
#include <treadle/host/run/runtime.h>

#include "components/document_components.h"
#include "components/fitted_losses.h"
#include "data/dataset.h"
#include "data/evaluated_rows.h"
#include "data/known_groups.h"
#include "evaluation/fitted_metrics.h"
#include "model/saved_model.h"
#include "outputs/output_stages.h"

namespace treadle::internal {

/// Requests beside the values of a prediction. Borrowed; may be null.
struct FurtherPredictions {
  const engine::DrawRequest* samples = nullptr;
  const engine::DropoutRequest* dropout = nullptr;
  bool uncertainty = false;
};

/// A finished run's model and all that its training fitted, made anew from what was saved. In eval
/// mode, on its device.
struct RestoredModel {
  enum class Use { kWholeBatches, kStepByStep };

  /// Throws what the parts throw; see restored().
  RestoredModel(const Runtime& runtime, SavedModel stored, Use use);

  std::vector<const Transform*> transform_list() const;
  /// For batches of `spec`. `groups`: see engine::PreparationOptions.
  engine::BatchPreparation preparation_of(const DataSpec& spec, at::Tensor groups = {}) const;

  /// `data` as make_data_for() takes it, with the run's dictionaries.
  std::unique_ptr<DataProvider> open(const std::string& data, OpenRequest::Purpose purpose) const;
  /// Samples of rows as the document makes them; null where it makes none. Throws a DataError where
  /// they have missing values that those of the training had not.
  std::unique_ptr<SampleReader> samples_of(const RowReader& rows) const;

  // Of models of whole batches.

  engine::PipelineOptions pipeline_options(const FurtherPredictions& further = {}) const;
  engine::EvaluationSetup setup(const engine::BatchPreparation& of_rows,
                                const FurtherPredictions& further = {}) const;
  /// The model once more, with modes for Monte Carlo dropout; null where nothing draws. Made at the
  /// first call.
  Model* dropout_model() const;
  void run_within_memory(const std::function<void()>& work) const;

  using Visit = std::function<void(const Predictions&, const Batch&)>;
  /// Lets `visit` see predictions for some rows of open data, in their order.
  Evaluation evaluate(const EvaluatedRows& data, const RowList& rows, const Visit& visit,
                      const FurtherPredictions& further = {}) const;

  const Runtime& runtime;
  StateDict saved;
  Dataset dataset;
  DocumentComponents components;
  FittedLosses losses;
  FittedMetrics metrics;
  std::vector<std::unique_ptr<Transform>> transforms;
  KnownGroups groups;
  engine::BatchPreparation preparation;  // of rows like the training's
  ModelSpec model_spec;
  std::optional<Objective> objective;
  std::shared_ptr<Model> model;
  OutputStages outputs;

 private:
  mutable std::once_flag makes_dropout_model_;
  mutable std::shared_ptr<Model> dropout_model_;
};

/// Rethrows the exception in flight, as restored() has it.
[[noreturn]] void rethrow_about(const std::filesystem::path& saved);

/// Reads what was saved and makes `Made` of it, from (runtime, stored). Whatever is wrong with a
/// stranger's file becomes a StorageError that names it.
template <typename Made>
std::unique_ptr<Made> restored(const Runtime& runtime, const std::filesystem::path& saved,
                               const std::string& device) {
  SavedModel stored = read_saved_model(runtime, saved, device);
  try {
    return std::make_unique<Made>(runtime, std::move(stored));
  } catch (...) {
    rethrow_about(saved);
  }
}

}  // namespace treadle::internal

#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <treadle/core/model.h>
#include <treadle/core/objective.h>
#include <treadle/core/state_dict.h>
#include <treadle/core/transform.h>
#include <treadle/engine/batch_preparation.h>
#include <treadle/host/run/runtime.h>

#include "evaluation/fitted_metrics.h"
#include "load/dataset.h"
#include "load/document_components.h"
#include "load/fitted_losses.h"
#include "load/known_groups.h"
#include "store/saved_model.h"

namespace treadle::internal {

/// A finished run's model and all that its training fitted, made anew from what was saved. In eval
/// mode, on its device.
struct RestoredModel {
  enum class Use { kWholeBatches, kStepByStep };

  /// Throws what the parts throw; see restored().
  RestoredModel(const Runtime& runtime, SavedModel stored, Use use);

  std::vector<const Transform*> transform_list() const;
  /// For batches of `spec`. `groups`: see engine::PreparationOptions.
  engine::BatchPreparation preparation_of(const DataSpec& spec, at::Tensor groups = {}) const;

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

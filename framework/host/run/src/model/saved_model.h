#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <treadle/core/components/state_dict.h>
#include <treadle/host/catalog/workflow_document.h>
#include <treadle/host/run/runtime.h>
#include <treadle/tensor/safetensors.h>

#include <treadle/core/components/state_tree.h>
#include "model/prediction_pool.h"

namespace treadle::internal {

/// Under this name the preprocessing keeps the hash of model.safetensors, its other half.
inline constexpr const char* kModelChecksum = "model_checksum";

/// In the metadata of model.safetensors: the names of the buffers, as a JSON array.
inline constexpr const char* kModelBuffers = "buffers";

/// A finished run's model as it is stored, with all that predicting needs.
struct SavedModel {
  ResolvedWorkflow workflow;
  StateDict preprocessing;
  NamedTensors weights;
  /// Of its output stages; empty where it has none.
  StateDict outputs = {};
  /// Of an ensemble: the models that predict in place of this one, and how their predictions become
  /// one.
  std::vector<SavedModel> members = {};
  PredictionPool pool = {};
  /// Of a run whose outputs predict with the models of its folds: those, in their order. They have
  /// the run's document and no outputs.
  std::vector<SavedModel> folds = {};
};

/// Reads the folder of a run, or a file that export_model() wrote. Its document gets `device` in
/// place of the one that the model was trained on. Throws StorageError when it is neither,
/// unfinished or damaged, PluginError when a plugin it needs is not there.
SavedModel read_saved_model(const Runtime& runtime, const std::filesystem::path& saved,
                            const std::string& device);

/// The weights of a safetensors file, or of a file that export_model() wrote, under the model's
/// names. Throws StorageError when it is damaged.
TensorFile read_weights(const std::filesystem::path& file);

/// The document of the run in `folder`, with `overrides` as `--set` has them. Throws PluginError
/// where it cannot be used because a plugin of the run is gone or damaged: checking the document
/// would only say that a component is unknown.
ResolvedWorkflow read_run_document(const Runtime& runtime, const std::filesystem::path& folder,
                                   std::span<const std::string> overrides);

/// As `--set` has it.
inline std::string device_override(const std::string& device) {
  return "resources.device=" + device;
}

/// The document that the model of the run in `folder` was made by, to be used on `device`: the
/// run's, or that of the best trial of a search. Throws like read_run_document().
ResolvedWorkflow read_model_document(const Runtime& runtime, const std::filesystem::path& folder,
                                     const std::string& device);

/// Reads the preprocessing of the run in `folder`. Throws StorageError saying what to do when it,
/// or the weights it belongs to, are damaged.
StateDict read_preprocessing(const std::filesystem::path& folder);

/// The folders of the models of folds that the run in `folder` has kept, in their order. Throws
/// StorageError where one of them is gone.
std::vector<std::filesystem::path> folds_in(const std::filesystem::path& folder);

}  // namespace treadle::internal

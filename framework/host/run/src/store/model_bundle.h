#pragma once

#include <filesystem>
#include <string>

#include <treadle/core/components/state_dict.h>
#include <treadle/tensor/safetensors.h>

#include <treadle/core/components/state_tree.h>

/// A run's model with all that predicting needs, as one file: a safetensors file with the weights
/// as "model/<name>", the tensors of the preprocessing as "preprocessing/<path>", and texts in its
/// metadata: "workflow", "preprocessing", "plugins" and a "checksum" of everything.
namespace treadle::internal {

struct ModelBundle {
  std::string document = {};  ///< workflow.json
  std::string plugins = {};   ///< plugins.lock
  StateDict preprocessing = {};
  NamedTensors weights = {};
};

/// Throws StorageError when the file cannot be written.
void write_model_bundle(const std::filesystem::path& file, const ModelBundle& bundle);

/// Whether this is the content of such a file, of any version.
bool is_model_bundle(const TensorFile& content);

/// Reads a file from anyone: sizes, names and nesting are bounded by what the file holds, nothing
/// in it is used as a path. Throws StorageError naming file and defect.
ModelBundle read_model_bundle(const std::filesystem::path& file);
/// The same, of the `content` of the file.
ModelBundle read_model_bundle(const std::filesystem::path& file, TensorFile content);

}  // namespace treadle::internal

#pragma once

#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

#include <treadle/host/run/run_folder.h>

/// The files of a fit, on their way from one process to another.
namespace treadle::internal {

enum class FitFiles {
  kCheckpoint,  ///< one of them, by its name
  kRecord,
  kModel  ///< the model that is kept to predict with, in PlannedFit::model_folder
};

/// Where they are in the folder of a run. `name` is of a checkpoint, or the folder of a model.
std::filesystem::path place_of(const RunFolder& folder, FitFiles kind, const std::string& fit,
                               const std::string& name = "");

/// A folder with all its files. Throws StorageError where a file cannot be read, as where somebody
/// removes the folder meanwhile.
nlohmann::json packed(const std::filesystem::path& folder);
/// The folder appears in one instant under its name; an earlier one there is replaced. Throws
/// StorageError.
void unpack(const nlohmann::json& files, const std::filesystem::path& folder);

}  // namespace treadle::internal

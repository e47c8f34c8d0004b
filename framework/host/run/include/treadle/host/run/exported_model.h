#pragma once

#include <filesystem>
#include <optional>

#include <treadle/core/model/quantized_weights.h>

namespace treadle {

/// Writes the model of a finished run as one file with all that predicting needs: weights, the
/// document, fitted transforms and data dictionaries, and which plugins the run used. It is a
/// safetensors file. With a `dtype`, its floating-point parameters are in that dtype:
/// quantized_weights.h. Throws StorageError when the folder holds no such run, a weight cannot be
/// in that dtype, or the file cannot be written.
void export_model(const std::filesystem::path& run_folder, const std::filesystem::path& file,
                  std::optional<WeightDtype> dtype = std::nullopt);

}  // namespace treadle

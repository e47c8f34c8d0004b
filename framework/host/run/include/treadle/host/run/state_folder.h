#pragma once

#include <filesystem>

#include <treadle/core/components/state_dict.h>

namespace treadle {

/// A StateDict as a folder: `state.json` (values, structure, and a checksum of each file),
/// `state.safetensors` (tensors, named "part/part/name"), and the part "model", if there is one, in
/// `weights.safetensors` under its plain names, so that other programs can read it.
///
/// The folder appears in one instant under its final name, or not at all. Throws StorageError.
void write_state_folder(const std::filesystem::path& folder, const StateDict& state);

/// Verifies the checksums first. Throws StorageError naming the damaged or missing file.
StateDict read_state_folder(const std::filesystem::path& folder);

}  // namespace treadle

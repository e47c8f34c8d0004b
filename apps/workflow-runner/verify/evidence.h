#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace treadle::cli {

/// What a finished run is recognized by: on this machine by its folder, on another one by the file
/// that `runs bundle` writes. Data is known by its hash alone, and is in neither.
struct Evidence {
  nlohmann::json document;     ///< with every default written out
  nlohmann::json environment;  ///< libtorch, BLAS, processor, device, plugins, the data's hash
  bool searched = false;       ///< its document was searched by, not trained once
  double seconds = 0;          ///< the run took
  /// SHA-256 of the files that say what it has learned, by their names.
  std::map<std::string, std::string> files;
  std::vector<std::string> history;  ///< the lines of history.csv, without seconds
  nlohmann::json result;             ///< without what differs from run to run: times, memory, paths
};

/// Of a folder of a run, or of a bundle. Throws StorageError where it is neither, or the run did
/// not end.
Evidence evidence_of(const std::filesystem::path& run_or_bundle);

/// Of a run that may still be running: what its environment.json says, which it writes whole.
nlohmann::json environment_of(const std::filesystem::path& run);

nlohmann::json bundle_of(const Evidence& evidence);

/// Each condition that may change bits and is another one: "libtorch is 2.6.0 here, was 1.13.0".
std::vector<std::string> different_conditions(const nlohmann::json& before,
                                              const nlohmann::json& here);

/// What did not come out the same, the first difference of each kind.
std::vector<std::string> differences(const Evidence& before, const Evidence& here);

}  // namespace treadle::cli

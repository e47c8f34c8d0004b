#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/host/run/runtime.h>

namespace treadle::cli {

struct GraftOptions {
  /// Of each run's flow, by its id or name; behind dots those of flows within, also of networks
  /// that a graph builder built: "hive_0.cells".
  std::string node;
  std::string combine;  ///< one of graft_combinations()
  bool is_frozen = false;
  std::filesystem::path folder;  ///< where the document will be
};

/// "add", "cat", "gate", "grid_cat", "mean".
std::vector<std::string> graft_combinations();

/// The document of a network that is made of trained ones: that of the first run, with the model
///
///     split into one branch for each run -> combined -> head
///
/// A branch has the steps of a run's flow up to `node`, so it computes what the node computes
/// there. Where `node` is a split, each of its branches becomes one. `weights` copies the weights
/// of each run's file into its branches; the head is new.
///
/// Only reads the runs' folders, and the data where `node` is within a built network. `note` is
/// told what may surprise. Throws a UsageError for a run whose model is no flow, has no such node,
/// takes other inputs or was trained on other columns or transforms, and where there are fewer than
/// two branches; a StorageError for a folder that is no finished run.
nlohmann::json graft_document(const Runtime& runtime, const std::vector<std::string>& runs,
                              const GraftOptions& options,
                              const std::function<void(const std::string&)>& note);

}  // namespace treadle::cli

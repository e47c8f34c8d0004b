#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

/// Runs as their folders show them, read without libtorch and without a lock: also while they go
/// on.
namespace treadle::cli {

enum class RunState { kFinished, kStopped, kRunning, kDamaged };

std::string_view state_word(RunState state);

struct RunRecord {
  std::filesystem::path folder;
  std::string name;
  RunState state = RunState::kStopped;
  std::optional<double> started;  ///< seconds since 1970
  std::optional<double> seconds;  ///< wall time so far
  std::int64_t epochs = 0;  ///< trained; of the training that came last while it is unfinished
  std::int64_t planned_epochs = 0;
  /// The first metric of the document, or the loss; empty before the first epoch.
  std::string metric;
  nlohmann::json metric_value;
  nlohmann::json document;  ///< resolved
  nlohmann::json best;      ///< the document of a search's best trial; null unless it is finished
  nlohmann::json result;    ///< null unless it is finished
};

/// Throws StorageError when the folder is not that of a run, or its files cannot be read.
RunRecord read_run(const std::filesystem::path& folder);

/// The runs in a folder, newest first. Folders that are no runs are passed over; of one that is
/// damaged only its folder is known. Throws
/// StorageError when the folder cannot be read.
std::vector<RunRecord> runs_in(const std::filesystem::path& folder);

/// One number of a finished run, the mean over the folds of a cross-validation.
struct ResultNumber {
  std::string name;
  nlohmann::json value;
  std::string better;  ///< "higher", "lower", or empty
};
/// "loss" first, then the metrics in the document's order.
std::vector<ResultNumber> result_numbers(const nlohmann::json& result);

/// How stable a run was that tests each batch before it trains on it: the variance over its windows
/// of the number that recovery is measured by, as "accuracy variance". Nothing for other runs.
std::optional<ResultNumber> window_variance(const nlohmann::json& result);

}  // namespace treadle::cli

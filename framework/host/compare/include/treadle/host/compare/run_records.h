#pragma once

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/host/record/run_result.h>

/// Runs as their folders show them, read without libtorch and without a lock: also while they go
/// on.
namespace treadle::compare {

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
  Number metric_value = std::nan("");
  nlohmann::json document;  ///< resolved
  nlohmann::json best;      ///< the document of a search's best trial; null unless it is finished
  std::optional<RunResult> result;  ///< of a finished run
};

/// Throws StorageError when the folder is not that of a run, or its files cannot be read.
RunRecord read_run(const std::filesystem::path& folder);

/// The runs in a folder, newest first. Folders that are no runs are passed over; of one that is
/// damaged only its folder is known. Throws
/// StorageError when the folder cannot be read.
std::vector<RunRecord> runs_in(const std::filesystem::path& folder);

/// The numbers of a finished run, means over the folds of a cross-validation: "loss" first, then
/// the metrics in the document's order.
std::vector<MetricValue> result_numbers(const RunResult& result);

/// How stable a run was that tests each batch before it trains on it: the variance over its windows
/// of the number that recovery is measured by, as "accuracy variance". Nothing for other runs.
std::optional<MetricValue> window_variance(const RunResult& result);

}  // namespace treadle::compare

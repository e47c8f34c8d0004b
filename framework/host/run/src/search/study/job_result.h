#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/search/tuner.h>

namespace treadle::internal {

/// The error of a trial that a user has cancelled. It counts as failed.
inline constexpr const char* kCancelled = "cancelled";

/// The end of a job of a study, in the journal and for the processes that share the study: the
/// state of its trial. Values are minimized.
struct JobResult {
  std::int64_t trial = 0;
  TrialState state = TrialState::kComplete;  ///< that the job ended with
  std::int64_t epoch = 0;  ///< the last one after which the pruner evaluated the trial
  std::vector<double> values = {};
  std::vector<double> constraints = {};
  std::vector<IntermediateValue> intermediate = {};
  std::string error = {};
  double seconds = 0;  ///< of one worker, in this job
};

/// The epoch of the last value; 0: none.
inline std::int64_t last_step(const std::vector<IntermediateValue>& values) {
  return values.empty() ? 0 : values.back().step;
}

nlohmann::json to_json(const JobResult& result);

/// The properties of a job that its result must have.
struct ExpectedResult {
  std::string place = {};  ///< "job 3 of the study iris": the place in messages
  std::int64_t trial = 0;
  std::size_t values = 1;       ///< as many as the search has objectives
  std::size_t constraints = 0;  ///< of a complete trial
};
/// Anybody may have written to the storage. Throws StorageError, with the place in it, for JSON
/// that to_json() makes of no job of this trial.
JobResult read_job_result(const nlohmann::json& stored, const ExpectedResult& expected);

/// "running", "paused", "complete", "pruned", "failed", as Optuna has them, which lacks "paused".
const char* state_text(TrialState state);
/// Nothing: no state that a job ends with is called so.
std::optional<TrialState> state_named(std::string_view text);

}  // namespace treadle::internal

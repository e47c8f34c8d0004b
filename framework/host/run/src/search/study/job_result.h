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

/// What a job of a study came to, as the processes that share the study tell each other: how its
/// trial stands.
struct JobResult {
  std::int64_t trial = 0;
  TrialState state = TrialState::kComplete;  ///< that the job ended with
  std::int64_t epoch = 0;                    ///< the last one that the trial was judged after
  std::vector<double> values = {};
  std::vector<double> constraints = {};
  std::vector<IntermediateValue> intermediate = {};
  std::string error = {};
  bool is_cancelled = false;
  double seconds = 0;  ///< of one worker, in this job
};

nlohmann::json to_json(const JobResult& result);

/// What is known of a job before it is read what it came to.
struct ExpectedResult {
  std::string place;  ///< "job 3 of the study iris": where messages say it is
  std::int64_t trial = 0;
  std::size_t values = 1;       ///< as many as the search has objectives
  std::size_t constraints = 0;  ///< of a complete trial
};
/// Whoever writes to the storage has written it. Throws StorageError, with the place in it, for
/// what to_json() does not make of any job of this trial.
JobResult read_job_result(const nlohmann::json& stored, const ExpectedResult& expected);

/// "running", "paused", "complete", "pruned", "failed", as Optuna has them, which lacks "paused".
const char* state_text(TrialState state);
/// Nothing: no state that a job ends with is called so.
std::optional<TrialState> state_named(std::string_view text);

}  // namespace treadle::internal

#pragma once

#include <cstdint>
#include <vector>

#include <treadle/host/record/run_result.h>

#include "context/run_parts.h"
#include "ensemble/study_ensemble.h"
#include "fit/cross_validation.h"
#include "search/study/study.h"

namespace treadle::internal {

/// Where the time of this process went by now. Expects open data.
TimeResult time_of(const RunParts& run);

/// Of the processes that trained.
struct ProcessFacts {
  std::int64_t baseline_memory = 0;  ///< bytes, before the data was loaded
  std::vector<RankTime> ranks = {};  ///< of several
};

/// Writes what a run has come to: its history in order, report.html, large tables, and result.json
/// last, as its presence means that the run is finished. What result.json holds. Expects that the
/// plan has ended and all was reported.
/// `study`: which the plan is the best run of; null where there was none. Its document is then
/// written beside the run's, for whoever uses the model. `ensemble`: of the study; null: none.
RunResult write_run_result(RunParts& run, const CrossValidation& plan, const Study* study,
                           const StudyEnsemble* ensemble, const ProcessFacts& facts);

}  // namespace treadle::internal

#pragma once

#include <cstdint>

#include <nlohmann/json.hpp>

#include "session/cross_validation.h"
#include "session/run_parts.h"

namespace treadle::internal {

/// Writes what a run has come to: its history in order, report.html, large tables, and result.json
/// last, as its presence means that the run is finished. What result.json holds. Expects that the
/// plan has ended and all was told.
nlohmann::json write_run_result(RunParts& run, const CrossValidation& plan,
                                std::int64_t baseline_memory);

}  // namespace treadle::internal

#pragma once

#include <nlohmann/json.hpp>

#include <treadle/core/validation/cross_validator.h>

namespace treadle::internal {

/// Which stretches of time the parts of each fold are, for the report: the number of steps, what
/// the first and the last are called, and for each fold and the refit the stretches of its parts as
/// [begin, end). Null for a plan whose parts are scattered over time, or that has one fold, or
/// many.
nlohmann::json plan_record(const SplitRequest& request, const ValidationPlan& plan);

}  // namespace treadle::internal

#pragma once

#include "context/run_parts.h"
#include "fit/fit_lender.h"
#include "search/study/study.h"

namespace treadle::internal {

/// Runs the fits of a search, and ends them in time where it has a time budget. Throws like
/// FitRunner::run(). Inside RunParts::budget.
/// `planner` is the study, or one around it; `lender` as of FitRunner.
void run_search(RunParts& run, Study& study, FitPlanner& planner, FitLender* lender);

}  // namespace treadle::internal

#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/host/compare/comparability.h>
#include <treadle/host/compare/method_comparison.h>
#include <treadle/host/compare/run_measures.h>
#include <treadle/host/compare/run_records.h>
#include "command_line/command_line.h"
#include "compare/run_table.h"
#include "terminal/terminal.h"

namespace treadle::cli {

/// The comparison of runs from their folders alone, without their models.
struct RunComparison {
  std::vector<compare::RunRecord> runs;
  compare::Budget budget;
  std::vector<compare::MeasuredRun> measured;
  RunTable table;
  compare::MethodComparison methods;
  std::vector<compare::Check> checks;

  std::string text(const Terminal& terminal) const;
  nlohmann::json json() const;
};

/// The rows that --on names. Throws UsageError for any other word.
compare::EvaluatedOn evaluated_on(const CommandLine& line);

/// Throws UsageError for options that make no sense together, for runs that predict different
/// targets, and where no run has what it is to be compared by; what read_run() throws.
RunComparison compare_runs(const CommandLine& line);

}  // namespace treadle::cli

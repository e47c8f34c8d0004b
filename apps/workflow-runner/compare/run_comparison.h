#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "command_line/command_line.h"
#include "compare/comparability.h"
#include "compare/method_comparison.h"
#include "compare/run_table.h"
#include "records/run_measures.h"
#include "records/run_records.h"
#include "terminal/terminal.h"

namespace treadle::cli {

/// What `compare` says of runs by their folders alone, without their models.
struct RunComparison {
  std::vector<RunRecord> runs;
  Budget budget;
  std::vector<MeasuredRun> measured;
  RunTable table;
  MethodComparison methods;
  std::vector<Check> checks;

  std::string text(const Terminal& terminal) const;
  nlohmann::json json() const;
};

/// The rows that --on names. Throws UsageError for any other word.
JudgedOn judged_on(const CommandLine& line);

/// Throws UsageError for options that make no sense together, for runs that predict different
/// targets, and where no run has what it is to be compared by; what read_run() throws.
RunComparison compare_runs(const CommandLine& line);

}  // namespace treadle::cli

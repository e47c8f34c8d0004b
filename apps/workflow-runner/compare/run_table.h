#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/host/compare/run_measures.h>
#include <treadle/host/compare/run_records.h>
#include "terminal/terminal.h"

namespace treadle::cli {

/// Runs side by side: a row for each, with its numbers and those settings that its model was
/// trained by, the best trial's of a search, that are not the same in all runs.
struct RunTable {
  std::vector<std::string> numbers;  ///< "loss", then metrics, "epochs" or "updates", "time"
  std::vector<std::string> keys;     ///< "optimizer.learning_rate"; a list is one value
  struct Row {
    std::string run;
    std::vector<nlohmann::json> values;  ///< of numbers, then of keys; null where there is none
  };
  std::vector<Row> rows;

  /// Settings that no line has room for beside the numbers are a table of their own, with a column
  /// for each run.
  std::string text(const Terminal& terminal) const;
  std::string csv() const;
  /// A list, an object for each row.
  nlohmann::json json() const;
};

/// `measured` has one for each of `runs`. `sort` names a number or a key, or is empty. The best
/// comes first where a direction is better, else the smallest; runs without the value come last.
/// Throws UsageError with a near miss for a name that no run has.
RunTable run_table(const std::vector<compare::RunRecord>& runs,
                   const std::vector<compare::MeasuredRun>& measured, const compare::Budget& budget,
                   const std::string& sort);

}  // namespace treadle::cli

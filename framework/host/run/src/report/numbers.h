#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <treadle/host/compare/run_measures.h>
#include <treadle/host/run/report.h>

#include "report/blocks.h"

namespace treadle::report {

/// "loss" and metrics by name, as values of a block.
using Record = std::map<std::string, Json>;

/// The loss and the metrics of a run.
struct Numbers {
  /// The rows of `result`: "validation", "training" without any, "test" where folds are tested, or
  /// "prequential".
  std::string rows;
  Record result;                     ///< of several folds each number is a mean with its deviation
  std::optional<Record> test;        ///< of the test rows
  std::vector<Record> folds;         ///< empty for a single training
  Json label;                        ///< of the loss
  std::vector<MetricValue> metrics;  ///< names and directions, in the document's order
};

Numbers read_numbers(const RunResult& result);

Record record_of(const Scores& scores);

using compare::is_of_one_class;

/// The loss or a metric of a record; null where it has none.
Json number_in(const Record& record, const std::string& name);

}  // namespace treadle::report

#pragma once

#include <string>
#include <vector>

#include <treadle/host/run/report.h>

#include "report/blocks.h"

namespace treadle::report {

/// The loss and the metrics of a run. A record of them is "loss", "metrics" by name, and reasons in
/// "undefined".
struct Numbers {
  /// The rows of `result`: "validation", "training" without any, "test" where folds are tested, or
  /// "prequential".
  std::string rows;
  Json result;  ///< a record; of several folds each number is a mean with its deviation
  Json test;    ///< the record of the test rows; null without any
  List folds;   ///< a record for each fold; empty for a single training
  Json label;   ///< of the loss
  /// Of the metrics: those of the document in its order, then others by name.
  std::vector<std::string> names;
};

Numbers read_numbers(const Json& result);

/// "recall.setosa" belongs to one class.
bool is_of_one_class(const std::string& metric);

/// The loss or a metric of a record, or the reason why it has none.
Json number_in(const Json& record, const std::string& name);

}  // namespace treadle::report

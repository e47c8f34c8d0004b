#pragma once

#include <string>
#include <vector>

#include <treadle/base/epoch_summary.h>

namespace treadle {

/// One row of history.csv.
struct HistoryRow {
  std::string fit;  ///< "final", "fold-1"; of a search also "trials/7" and "trials/7/fold-1"
  EpochSummary epoch;
};

/// The rows of one training.
struct TrainingCurve {
  std::string fit;
  std::vector<EpochSummary> epochs;
};

/// By training, in the order of their first rows.
std::vector<TrainingCurve> curves_of(const std::vector<HistoryRow>& rows);

}  // namespace treadle

#pragma once

#include <string>
#include <vector>

#include <treadle/core/history/run_observer.h>

namespace treadle {

/// The rows of history.csv of one training.
struct TrainingCurve {
  std::string fit;  ///< "final", "fold-1"; of a search also "trials/7" and "trials/7/fold-1"
  std::vector<EpochSummary> epochs;
};

}  // namespace treadle

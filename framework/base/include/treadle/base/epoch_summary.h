#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <treadle/base/number.h>

namespace treadle {

/// One row of history.
struct EpochSummary {
  std::int64_t epoch = 0;  ///< from 1
  /// As planned; early stopping may end sooner. Nothing: until something stops the training.
  std::optional<std::int64_t> epochs;
  std::int64_t step = 0;     ///< optimizer steps done, over all epochs
  double learning_rate = 0;  ///< of the last step
  Number train_loss;         ///< sum / weight over the epoch; undefined: every step was skipped
  std::optional<Number> val_loss;    ///< nothing: validation rows were not evaluated
  std::vector<MetricValue> metrics;  ///< on the validation rows
  bool best = false;                 ///< the best epoch so far
  double seconds = 0;                ///< wall time of the epoch; never compared between runs
  /// Logged values of the model: means over the training batches.
  std::vector<MetricValue> logged = {};
  /// The changes that callbacks made after it, each in a few words.
  std::vector<std::string> decisions = {};
};

}  // namespace treadle

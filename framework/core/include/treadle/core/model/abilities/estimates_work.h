#pragma once

#include <optional>

namespace treadle {

/// The work of a training step: forward, backward.
struct StepWork {
  double operations = 0;  ///< for each row: floating-point operations
  double bytes = 0;       ///< for each row: of values and of their gradients, read and written
  double calls = 0;       ///< whatever the number of rows: calls of tensor operations

  bool operator==(const StepWork&) const = default;
  StepWork& operator+=(const StepWork& other) {
    operations += other.operations;
    bytes += other.bytes;
    calls += other.calls;
    return *this;
  }
  StepWork& operator*=(double times) {
    operations *= times;
    bytes *= times;
    calls *= times;
    return *this;
  }
};

/// Estimates the work of a step, for `"shards": "auto"`, which otherwise counts parameters.
class EstimatesWork {
 public:
  virtual ~EstimatesWork();
  /// From sizes alone, never by measuring: results depend on it, so it is the same on every
  /// machine. Nothing if the sizes are unknown.
  virtual std::optional<StepWork> training_work() const = 0;
};

}  // namespace treadle

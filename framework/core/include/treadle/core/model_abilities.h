#pragma once

#include <optional>
#include <string>

/// Further abilities of a model beside those in model.h, found by dynamic_cast. Needed by authors
/// of models that are not flows.
namespace treadle {

/// The work of a training step for each row of its batch.
struct RowWork {
  double operations = 0;  ///< floating-point operations
  double bytes = 0;       ///< of values and of their gradients, read and written

  bool operator==(const RowWork&) const = default;
  RowWork& operator+=(const RowWork& other) {
    operations += other.operations;
    bytes += other.bytes;
    return *this;
  }
};

/// Estimates the work of a step, for `"shards": "auto"`, which otherwise counts parameters.
class EstimatesWork {
 public:
  virtual ~EstimatesWork();
  /// From sizes alone, never by measuring: results depend on it, so it is the same on every
  /// machine. Nothing if the sizes are unknown.
  virtual std::optional<RowWork> training_work() const = 0;
};

/// A model with `"execution": "auto"`.
class ChoosesExecution {
 public:
  virtual ~ChoosesExecution();
  /// "compiled", or "dynamic, because …": the run's note. Empty unless the choice was automatic.
  virtual const std::string& execution_choice() const = 0;
};

}  // namespace treadle

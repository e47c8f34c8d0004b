#pragma once

#include <optional>
#include <string>

/// What a model may tell of itself beside what model.h has; found out by dynamic_cast. Needed by
/// authors of models that are no flows.
namespace treadle {

/// What a training step computes and moves for each row of its batch.
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

/// Estimates its work. `"shards": "auto"` asks; of other models it counts parameters.
class EstimatesWork {
 public:
  virtual ~EstimatesWork();
  /// From sizes alone, never by measuring: results depend on it, so it is the same on every
  /// machine. Nothing where the sizes are not known.
  virtual std::optional<RowWork> training_work() const = 0;
};

/// Was left to decide how it runs.
class ChoosesExecution {
 public:
  virtual ~ChoosesExecution();
  /// "compiled", or "dynamic, because …": the run notes it. Empty where it was not left to decide.
  virtual const std::string& execution_choice() const = 0;
};

}  // namespace treadle

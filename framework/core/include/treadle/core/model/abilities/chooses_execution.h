#pragma once

#include <string>

namespace treadle {

/// A model with `"execution": "auto"`.
class ChoosesExecution {
 public:
  virtual ~ChoosesExecution();
  /// "compiled", or "dynamic, because …": the run's note. Empty unless the choice was automatic.
  virtual const std::string& execution_choice() const = 0;
};

}  // namespace treadle

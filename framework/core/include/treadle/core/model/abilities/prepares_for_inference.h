#pragma once

namespace treadle {

/// Can become faster where it is only evaluated.
class PreparesForInference {
 public:
  virtual ~PreparesForInference();
  /// From now on weights stay as they are and evaluation gives results that may round otherwise.
  virtual void prepare_for_inference() = 0;
};

}  // namespace treadle

#pragma once

namespace treadle {

/// Takes undefined inputs, for states that are not written yet.
class TakesAbsent {
 public:
  virtual ~TakesAbsent();
};

}  // namespace treadle

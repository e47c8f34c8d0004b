#pragma once

namespace treadle {

/// Computes each vector along the last dimension of its one input by itself and alike, without
/// state or random numbers: forward() of some positions, [n, in], gives what forward() of all gives
/// there, but for rounding. At the end of a model its output can be deferred (deferred_output.h).
class ActsOnPositions {
 public:
  virtual ~ActsOnPositions();
  virtual bool acts_on_positions() const { return true; }
};

}  // namespace treadle

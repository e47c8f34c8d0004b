#pragma once

namespace treadle {

/// A layer that computes its time steps one after the other, each by calls of its own: work that
/// shards do not divide.
class WorksStepByStep {
 public:
  virtual ~WorksStepByStep();
  /// Calls of tensor operations for one time step, forward and backward.
  virtual double calls_per_time_step() const = 0;
};

}  // namespace treadle

#pragma once

#include <cstdint>
#include <string>

#include <treadle/core/components/state_dict.h>
#include <treadle/core/validation/metric_computer.h>

namespace treadle::callbacks {

/// Follows one number and tells when it has stopped getting better.
///
/// The first value initialises and never ends anything. After it, s = alpha * value + (1 - alpha) *
/// s; s is an improvement when it is better than the best s by more than min_delta. step() is true
/// once `patience` epochs have passed without one; patience 0: at the first.
class Patience final : public Stateful {
 public:
  struct Options {
    double alpha = 1;
    double min_delta = 0;
    std::int64_t patience = 0;
    Direction direction = Direction::kLowerIsBetter;  ///< kNone counts as lower is better
  };
  explicit Patience(Options options) : options_(options) {}

  /// Takes one value, `epochs` after the one before; true: patience is at an end. A value that is
  /// not a number ends it with that reason: it would never get better again.
  bool step(double value, std::int64_t epochs = 1);

  /// Whether the last value given to step() was an improvement (the first one is).
  bool improved() const { return improved_; }
  /// The best smoothed value.
  double best() const { return best_; }
  /// Why step() was true; empty otherwise.
  const std::string& reason() const { return reason_; }

 private:
  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;

  Options options_;
  bool started_ = false;
  bool improved_ = false;
  double smoothed_ = 0;
  double best_ = 0;
  std::int64_t without_improvement_ = 0;
  std::string reason_;
};

}  // namespace treadle::callbacks

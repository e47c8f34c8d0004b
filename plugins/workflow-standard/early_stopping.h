#pragma once

#include <cstdint>
#include <string>

#include <treadle/core/metric_computer.h>
#include <treadle/core/state_dict.h>

namespace treadle {

/// Watches one number, once an epoch, and says when it no longer gets better.
///
/// The first value initialises and never stops. After it, s = alpha * value + (1 - alpha) * s; s is
/// an improvement when it is better than the best s by more than min_delta. step() asks to stop
/// once `patience` values in a row were none; patience 0 stops at the first.
class EarlyStopping final : public Stateful {
 public:
  struct Options {
    double alpha = 1;
    double min_delta = 0;
    std::int64_t patience = 0;
    Direction direction = Direction::kLowerIsBetter;  ///< kNone counts as lower is better
  };
  explicit EarlyStopping(Options options) : options_(options) {}

  /// Feeds one value; true means stop. A value that is not a number stops with that reason: it
  /// would never get better again.
  bool step(double value);

  /// Whether the last value given to step() was an improvement (the first one is).
  bool improved() const { return improved_; }
  /// The best smoothed value.
  double best() const { return best_; }
  /// Why step() asked to stop; empty otherwise.
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

}  // namespace treadle

#pragma once

#include <optional>
#include <string>

#include <treadle/base/config.h>
#include <treadle/core/training/training_callback.h>
#include <treadle/core/validation/metric_computer.h>

namespace treadle::callbacks {

/// A number of the history that a callback follows: "monitor" and "mode" of its configuration.
class Monitor {
 public:
  explicit Monitor(const Config& config);

  /// In begin(): fails when the history will not have the number. False for a refit, which is
  /// neither stopped nor chosen from.
  bool begin(TrainingControl& control) const;

  /// Its value in this row, with the direction that "mode" or the number itself has; lower is
  /// better for one without. Nothing when the validation rows were not evaluated, or the number is
  /// undefined of them. Throws a TrainingError when the number is gone.
  std::optional<MetricValue> value(const EpochSummary& row) const;

  const std::string& name() const { return name_; }

 private:
  Config config_;
  std::string name_;
  Direction mode_ = Direction::kNone;
};

/// The number `name` of a row; nothing when the validation rows were not evaluated in this epoch,
/// or the number is undefined of them. Throws a TrainingError when it is gone although they were.
std::optional<MetricValue> value_in(const EpochSummary& row, const std::string& name);

/// The best value so far. Only finite values count, a tie is no improvement.
class BestValue final : public Stateful {
 public:
  /// Whether it is better than all before.
  bool offer(const MetricValue& value);

 private:
  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;

  bool has_any_ = false;
  double best_ = 0;
};

}  // namespace treadle::callbacks

#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <treadle/core/training/training_callback.h>
#include <treadle/testing/training/training_fakes.h>

namespace treadle::testing {

/// A training for the unit tests of callbacks: it is where the test says, and what a callback does
/// to it is written down.
class RecordingControl final : public TrainingControl {
 public:
  // What a callback sees; the test sets it.
  std::int64_t steps_per_epoch = 4;
  std::int64_t planned_epochs = 10;
  std::int64_t epoch = 0;  ///< epochs done
  bool refit = false;
  double rate = 0.1;
  double time = 0;  ///< seconds trained
  std::vector<std::string> names = {"train_loss", "learning_rate", "val_loss"};
  TinyModel tiny{1};

  // What it did.
  std::vector<std::string> changes;
  std::vector<std::string> notes;
  std::vector<MetricValue> logged;
  std::vector<WeightAveraging> averages;
  std::string stop_reason;  ///< empty: not stopped
  std::string chosen_by;    ///< empty: the training ends with its last weights
  std::int64_t kept = 0;    ///< how often weights were kept
  std::vector<std::string> followed;
  std::int64_t tolerated = 0;
  bool logs_norm = false;
  double factor = 1;

  /// Ends an epoch: the row with its number, given to the callback.
  void after_epoch(TrainingCallback& callback, EpochSummary row) {
    ++epoch;
    row.epoch = epoch;
    callback.after_epoch(row, *this);
  }

  const std::string& name() const override { return name_; }
  bool is_refit() const override { return refit; }
  std::int64_t epochs_done() const override { return epoch; }
  std::int64_t steps_done() const override { return epoch * steps_per_epoch; }
  double seconds() const override { return time; }
  double learning_rate() const override { return rate * factor; }
  Model& model() override { return tiny; }
  std::int64_t steps(const Duration& duration) const override {
    return duration.steps(steps_per_epoch, planned_epochs * steps_per_epoch);
  }
  std::int64_t epochs(const Duration& duration) const override {
    return (steps(duration) + steps_per_epoch - 1) / steps_per_epoch;
  }
  const std::vector<std::string>& logged_names() override { return names; }
  void follow(const std::string& name) override { followed.push_back(name); }

  void average_weights(const WeightAveraging& averaging) override { averages.push_back(averaging); }
  void end_with_kept_weights(const std::string& by) override { chosen_by = by; }
  void log_gradient_norm() override { logs_norm = true; }
  void tolerate_skipped_steps(std::int64_t most) override { tolerated = std::max(tolerated, most); }

  void stop(const std::string& reason) override {
    if (stop_reason.empty())
      stop_reason = reason;
  }
  void multiply_rate(double by) override { factor *= by; }
  double rate_factor() const override { return factor; }
  void keep_weights() override { ++kept; }
  void changed(const std::string& what) override {
    changes.push_back(std::to_string(epoch) + " " + what);
    last_changed_ = epoch;
  }
  std::int64_t last_changed_epoch() const override { return last_changed_; }
  void note(const std::string& text) override { notes.push_back(text); }
  void log(const std::string& name, double value) override {
    logged.push_back({name, value, Direction::kNone});
  }

 private:
  std::string name_ = "fold-1";
  std::int64_t last_changed_ = 0;
};

}  // namespace treadle::testing

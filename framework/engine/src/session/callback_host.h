#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <treadle/core/training/training_callback.h>

#include "session/history_numbers.h"
#include "session/rates.h"
#include "session/session_parts.h"
#include "session/weight_choice.h"

namespace treadle::engine {

/// The callbacks of a training, and what they see and change of it. One training thread.
class CallbackHost final : private TrainingControl {
 public:
  /// All outlive it.
  CallbackHost(const SessionParts& parts, HistoryNumbers& numbers, WeightChoice& weights,
               Rates& rates);

  /// Before the first step.
  void begin();
  /// Behind a step with an update.
  void after_step();
  /// Adds what the callbacks log to the row.
  void after_epoch(EpochSummary& row);

  /// Ends the training with the epoch.
  void end_training(const std::string& reason);
  /// A change to the training, for the row of the epoch.
  void add_decision(std::string what) { decisions_.push_back(std::move(what)); }
  std::vector<std::string> take_decisions();
  bool logs_norm() const { return logs_gradient_norm_; }
  bool tolerates_skips() const { return tolerated_skips_ > 0; }

  void save_in(StateDict& state) const;
  void load_from(const StateDict& state);

 private:
  const std::string& name() const override { return name_; }
  bool is_refit() const override { return parts_.setup.is_refit; }
  std::int64_t epochs_done() const override { return parts_.progress.epochs_done(); }
  std::int64_t steps_done() const override { return parts_.progress.steps_done(); }
  double seconds() const override {
    return parts_.setup.group != nullptr ? parts_.setup.group->agreed().seconds
                                         : parts_.progress.seconds();
  }
  double learning_rate() const override { return rates_.last(); }
  Model& model() override { return *parts_.setup.model; }
  std::int64_t steps(const Duration& duration) const override {
    return rates_.span().steps(duration);
  }
  std::int64_t epochs(const Duration& duration) const override;
  const std::vector<std::string>& logged_names() override { return numbers_.names(); }
  void follow(const std::string& name) override { numbers_.follow(name); }

  void average_weights(const WeightAveraging& averaging) override;
  void end_with_kept_weights(const std::string& chosen_by) override;
  void log_gradient_norm() override;
  void tolerate_skipped_steps(std::int64_t most_in_a_row) override;

  void stop(const std::string& reason) override { end_training(reason); }
  void multiply_rate(double factor) override { rates_.multiply(factor); }
  double rate_factor() const override { return rates_.factor(); }
  void keep_weights() override { weights_.keep(); }
  void changed(const std::string& what) override;
  std::int64_t last_changed_epoch() const override { return last_changed_epoch_; }
  void note(const std::string& text) override { parts_.context.note(text); }
  void log(const std::string& name, double value) override {
    logged_.push_back({name, value, Direction::kNone});
  }

  void expect_beginning(const char* function) const;
  const std::vector<TrainingCallback*>& callbacks() const { return parts_.setup.callbacks; }

  const SessionParts parts_;
  HistoryNumbers& numbers_;
  WeightChoice& weights_;
  Rates& rates_;
  const std::string name_;
  std::vector<TrainingCallback*> of_steps_;  // those that want steps
  bool has_begun_ = false;
  bool logs_gradient_norm_ = false;
  std::int64_t tolerated_skips_ = 0;
  std::int64_t last_changed_epoch_ = 0;
  std::vector<std::string> decisions_;
  std::vector<MetricValue> logged_;  // by the callback that is running
};

}  // namespace treadle::engine

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <treadle/base/component.h>
#include <treadle/base/duration.h>
#include <treadle/core/components/state_dict.h>
#include <treadle/core/history/run_observer.h>
#include <treadle/core/model/model.h>

namespace treadle {

/// One step, for callbacks. Made by the framework.
struct StepReport {
  std::int64_t step = 0;  ///< batches trained on, with this one
  double learning_rate = 0;
  Number loss;  ///< mean over the batch; not finite where `updated` is false
  /// L2 norm of all gradients before clipping; nothing unless a callback requested it.
  std::optional<double> gradient_norm;
  bool updated = true;  ///< false: loss or gradients were not finite, and the step was skipped
};

/// Which weights of a training are averaged, and how.
struct WeightAveraging {
  Duration start;                             ///< the first weights
  Duration every{1, Duration::Unit::kSteps};  ///< between two
  /// Of the average that stays at each addition, in (0, 1): an exponential moving average. Nothing:
  /// all weights count the same.
  std::optional<double> decay = std::nullopt;
};

/// A callback's view of its training, and the changes it may make. Created by the framework; valid
/// during the call.
class TrainingControl {
 public:
  virtual ~TrainingControl();

  /// "fold-2", "final".
  virtual const std::string& name() const = 0;
  /// The training has the epochs that earlier ones have found best, and no validation rows (a
  /// refit): it is not to be stopped, nor does it end with other weights than the last.
  virtual bool is_refit() const = 0;
  virtual std::int64_t epochs_done() const = 0;
  virtual std::int64_t steps_done() const = 0;
  /// Time trained, with that before a resume.
  virtual double seconds() const = 0;
  /// Of the last step; 0 before the first.
  virtual double learning_rate() const = 0;
  virtual Model& model() = 0;

  /// A duration of this training in steps, or in whole epochs, rounded up. Expects one that
  /// is not wall time.
  virtual std::int64_t steps(const Duration& duration) const = 0;
  virtual std::int64_t epochs(const Duration& duration) const = 0;

  /// The numbers that every row of the history will have, by the names of treadle::find_value().
  /// In begin(): may evaluate some rows to learn the names of the metrics.
  virtual const std::vector<std::string>& logged_names() = 0;
  /// The number `name` of the history decides something. Before the first step a note names those
  /// that the validation rows leave undefined.
  virtual void follow(const std::string& name) = 0;
  /// Fails at `config`'s `key` unless one number of the history, and only one, is called `name`;
  /// follows it.
  void expect_logged(const std::string& name, const Config& config, std::string_view key);

  // In begin() alone, for the whole training.

  /// Evaluate, and end with, an average of the weights. At most one a training.
  virtual void average_weights(const WeightAveraging& averaging) = 0;
  /// End with the weights that keep_weights() was called for last, which are the best by the number
  /// `chosen_by`. At most one callback a training may request it.
  virtual void end_with_kept_weights(const std::string& chosen_by) = 0;
  /// Puts the gradient norm into steps and, as its mean, into the history: as "gradient_norm",
  /// which is one of the callback's log_names().
  virtual void log_gradient_norm() = 0;
  /// Skip up to so many steps in a row whose loss or gradients are not finite, instead of ending
  /// the training with an error. Their number is in the history as "skipped_steps", which is one of
  /// the callback's log_names().
  virtual void tolerate_skipped_steps(std::int64_t most_in_a_row) = 0;

  // In after_step() and after_epoch(). What is due is done after the last epoch as well: another
  // run may train on from there, and is to be as one that was never cut.

  /// End the training with this epoch. The first reason counts: the epoch's row of the history and
  /// the result have it.
  virtual void stop(const std::string& reason) = 0;
  /// From the next step on, beside what the schedule does.
  virtual void multiply_rate(double factor) = 0;
  /// The product of these factors so far.
  virtual double rate_factor() const = 0;
  /// The weights that were evaluated in this epoch are the best so far.
  virtual void keep_weights() = 0;

  /// Reports a change to the training in a few words, as a note and in the row of the history.
  /// Callbacks that follow a number over several epochs start again after it.
  virtual void changed(const std::string& what) = 0;
  /// The epoch (from 1) in which any callback last called changed(); 0: none has.
  virtual std::int64_t last_changed_epoch() const = 0;
  /// Adds a note without effect on the training.
  virtual void note(const std::string& text) = 0;
  /// Adds a number to the row of the history, under one of the callback's log_names().
  virtual void log(const std::string& name, double value) = 0;
};

/// An action within any training loop: early stopping, learning-rate changes, freezing, averaging,
/// guarding. Named in the document's `training.callbacks`; called in that order.
///
/// One object per training. Its state is part of every checkpoint; on a resume begin() is called as
/// for a new training, and load_state() after it.
class TrainingCallback : public Component, public Stateful {
 public:
  static constexpr std::string_view kInterface = "treadle.callback/0";

  ~TrainingCallback() override;

  /// Numbers that it adds to each row of the history. A function of the configuration alone.
  std::vector<std::string> log_names() const;

  // All on the training thread, none within a step.

  /// Before the first step, and before a resumed one.
  void begin(TrainingControl& control);
  /// Whether after_step() is to be called. A function of the configuration alone.
  bool wants_steps() const;
  void after_step(const StepReport& step, TrainingControl& control);
  /// After the epoch's validation rows were evaluated. The row has what earlier callbacks logged.
  void after_epoch(const EpochSummary& epoch, TrainingControl& control);

 private:
  virtual std::vector<std::string> do_log_names() const;
  virtual void do_begin(TrainingControl& control);
  virtual bool do_wants_steps() const;
  virtual void do_after_step(const StepReport& step, TrainingControl& control);
  virtual void do_after_epoch(const EpochSummary& epoch, TrainingControl& control);
  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;
};

}  // namespace treadle

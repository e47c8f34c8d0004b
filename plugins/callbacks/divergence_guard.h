#pragma once

#include <treadle/base/config.h>
#include <treadle/core/training/training_callback.h>

namespace treadle::callbacks {

/// Lowers the learning rate while the loss explodes, and lets it recover.
///
/// The mean loss of the first `baseline_steps` steps is the baseline. After that a step whose loss
/// is more than `growth` times that of the step before, or more than `ratio` times the baseline, is
/// a bad one: the rate is multiplied by 0.7, from the fifth bad step in a row on by 0.5, from the
/// tenth on by 0.3. A good step multiplies it by 1.05. All this together never takes the rate out
/// of [min_factor, 1] of what it would be. Losses are compared by size: a loss below 0 says
/// nothing.
///
/// Steps whose loss or gradients are not finite are skipped, up to `skip` in a row, and count as
/// bad.
class DivergenceGuard final : public TrainingCallback {
 public:
  explicit DivergenceGuard(const Config& config);

 private:
  std::vector<std::string> do_log_names() const override;
  void do_begin(TrainingControl& control) override;
  bool do_wants_steps() const override { return true; }
  void do_after_step(const StepReport& step, TrainingControl& control) override;
  void do_after_epoch(const EpochSummary& epoch, TrainingControl& control) override;
  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;

  bool is_bad(const StepReport& step) const;

  std::int64_t baseline_steps_;
  double growth_;
  double ratio_;
  double min_factor_;
  std::int64_t skip_;

  std::int64_t steps_ = 0;  // with a finite loss
  double baseline_ = 0;     // the sum, then the mean
  double last_ = 0;
  std::int64_t bad_in_a_row_ = 0;
  double factor_ = 1;
};

}  // namespace treadle::callbacks

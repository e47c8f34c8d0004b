#include "divergence_guard.h"

#include <algorithm>

#include "number_text.h"

namespace treadle::callbacks {

DivergenceGuard::DivergenceGuard(const Config& config)
    : baseline_steps_(config.get<std::int64_t>("baseline_steps")),
      growth_(config.get<double>("growth")),
      ratio_(config.get<double>("ratio")),
      min_factor_(config.get<double>("min_factor")),
      skip_(config.get<std::int64_t>("skip")) {}

std::vector<std::string> DivergenceGuard::do_log_names() const {
  std::vector<std::string> names{"divergence_guard.factor"};
  if (skip_ > 0)
    names.emplace_back("skipped_steps");
  return names;
}

void DivergenceGuard::do_begin(TrainingControl& control) {
  control.tolerate_skipped_steps(skip_);
}

bool DivergenceGuard::is_bad(const StepReport& step) const {
  if (!step.updated)
    return true;
  if (steps_ < baseline_steps_)
    return false;
  return (last_ > 0 && step.loss > growth_ * last_) ||
         (baseline_ > 0 && step.loss > ratio_ * baseline_);
}

void DivergenceGuard::do_after_step(const StepReport& step, TrainingControl& control) {
  if (step.loss.is_undefined())
    return;
  const bool bad = is_bad(step);
  if (step.updated) {
    if (steps_ < baseline_steps_)
      baseline_ += step.loss / static_cast<double>(baseline_steps_);
    ++steps_;
    last_ = step.loss;
  }
  bad_in_a_row_ = bad ? bad_in_a_row_ + 1 : 0;
  const double change = !bad ? 1.05 : bad_in_a_row_ >= 10 ? 0.3 : bad_in_a_row_ >= 5 ? 0.5 : 0.7;
  const double factor = std::clamp(factor_ * change, min_factor_, 1.0);
  if (factor == factor_)
    return;
  control.multiply_rate(factor / factor_);
  if (bad && factor_ == 1) {
    control.changed("learning rate lowered in step " + std::to_string(step.step) +
                    ": the loss exploded to " + number_text(step.loss));
  }
  factor_ = factor;
}

void DivergenceGuard::do_after_epoch(const EpochSummary&, TrainingControl& control) {
  control.log("divergence_guard.factor", factor_);
}

StateDict DivergenceGuard::do_state() const {
  StateDict state;
  state.put("steps", nlohmann::json(steps_));
  state.put_number("baseline", baseline_);
  state.put_number("last", last_);
  state.put("bad_in_a_row", nlohmann::json(bad_in_a_row_));
  state.put_number("factor", factor_);
  return state;
}

void DivergenceGuard::do_load_state(const StateDict& state) {
  steps_ = state.value("steps").get<std::int64_t>();
  baseline_ = state.number("baseline");
  last_ = state.number("last");
  bad_in_a_row_ = state.value("bad_in_a_row").get<std::int64_t>();
  factor_ = state.number("factor");
}

}  // namespace treadle::callbacks

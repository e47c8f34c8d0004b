#include "reduce_on_plateau.h"

#include <algorithm>
#include <cmath>

#include "number_text.h"

namespace treadle::callbacks {

ReduceOnPlateau::ReduceOnPlateau(const Config& config)
    : monitor_(config),
      length_(config.get<Duration>("patience")),
      factor_(config.get<double>("factor")),
      min_delta_(config.get<double>("min_delta")),
      min_rate_(config.get<double>("min_rate")),
      cooldown_length_(config.get<Duration>("cooldown")) {}

void ReduceOnPlateau::do_begin(TrainingControl& control) {
  is_active_ = monitor_.begin(control);
  patience_ = std::max<std::int64_t>(1, control.epochs(length_));
  cooldown_ = control.epochs(cooldown_length_);
}

bool ReduceOnPlateau::improves(const MetricValue& value) const {
  if (!value.value.is_known())
    return false;
  if (!has_best_)
    return true;
  return value.direction == Direction::kHigherIsBetter ? value.value > best_ + min_delta_
                                                       : value.value < best_ - min_delta_;
}

void ReduceOnPlateau::do_after_epoch(const EpochSummary& epoch, TrainingControl& control) {
  if (!is_active_)
    return;
  const std::optional<MetricValue> value = monitor_.value(epoch);
  const std::int64_t passed = epoch.epoch - last_epoch_;
  if (value || epoch.val_loss)
    last_epoch_ = epoch.epoch;
  if (!value) {
    // An epoch that was evaluated and has no value counts for nothing.
    if (epoch.val_loss)
      since_ += passed;
    return;
  }
  if (improves(*value)) {
    has_best_ = true;
    best_ = value->value;
    since_ = epoch.epoch;
    return;
  }
  if (epoch.epoch <= cool_until_) {
    since_ = epoch.epoch;
    return;
  }
  if (epoch.epoch - since_ < patience_)
    return;
  reduce(control, epoch.epoch - since_);
  since_ = epoch.epoch;
  cool_until_ = epoch.epoch + cooldown_;
}

void ReduceOnPlateau::reduce(TrainingControl& control, std::int64_t epochs) {
  const double rate = control.learning_rate();
  const double factor = rate > 0 ? std::max(factor_, std::min(1.0, min_rate_ / rate)) : factor_;
  if (factor == 1)
    return;
  control.multiply_rate(factor);
  control.changed("learning rate times " + number_text(factor) + ": no improvement of " +
                  monitor_.name() + " for " + std::to_string(epochs) +
                  (epochs == 1 ? " epoch" : " epochs"));
}

StateDict ReduceOnPlateau::do_state() const {
  StateDict state;
  state.put("has_best", nlohmann::json(has_best_));
  state.put_number("best", best_);
  state.put("since", nlohmann::json(since_));
  state.put("last_epoch", nlohmann::json(last_epoch_));
  state.put("cool_until", nlohmann::json(cool_until_));
  return state;
}

void ReduceOnPlateau::do_load_state(const StateDict& state) {
  has_best_ = state.value("has_best").get<bool>();
  best_ = state.number("best");
  since_ = state.value("since").get<std::int64_t>();
  last_epoch_ = state.value("last_epoch").get<std::int64_t>();
  cool_until_ = state.value("cool_until").get<std::int64_t>();
}

}  // namespace treadle::callbacks

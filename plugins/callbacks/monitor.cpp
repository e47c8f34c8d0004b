#include "monitor.h"

#include <treadle/base/error.h>
#include <treadle/core/history/history.h>

namespace treadle::callbacks {

Monitor::Monitor(const Config& config)
    : config_(config), name_(config.get<std::string>("monitor")) {
  const auto mode = config.get<std::string>("mode");
  if (mode != "auto")
    mode_ = mode == "max" ? Direction::kHigherIsBetter : Direction::kLowerIsBetter;
}

bool Monitor::begin(TrainingControl& control) const {
  if (control.is_refit())
    return false;
  control.expect_logged(name_, config_, "monitor");
  return true;
}

std::optional<MetricValue> Monitor::value(const EpochSummary& row) const {
  std::optional<MetricValue> value = value_in(row, name_);
  if (!value)
    return value;
  if (mode_ != Direction::kNone)
    value->direction = mode_;
  if (value->direction == Direction::kNone)
    value->direction = Direction::kLowerIsBetter;
  return value;
}

std::optional<MetricValue> value_in(const EpochSummary& row, const std::string& name) {
  std::optional<MetricValue> value = find_value(row, name);
  if (!value && row.val_loss) {
    throw TrainingError("\"" + name +
                        "\" was in the history at first and no longer is; a model or metric must "
                        "give the same names for any rows: monitor another, or fix its plugin");
  }
  return value && value->value.is_undefined() ? std::nullopt : value;
}

bool BestValue::offer(const MetricValue& value) {
  if (!value.value.is_known())
    return false;
  const bool is_better =
      !has_any_ ||
      (value.direction == Direction::kHigherIsBetter ? value.value > best_ : value.value < best_);
  if (is_better)
    best_ = value.value;
  has_any_ = true;
  return is_better;
}

StateDict BestValue::do_state() const {
  StateDict state;
  state.put("has_any", nlohmann::json(has_any_));
  state.put_number("best", best_);
  return state;
}

void BestValue::do_load_state(const StateDict& state) {
  has_any_ = state.value("has_any").get<bool>();
  best_ = state.number("best");
}

}  // namespace treadle::callbacks

#include "patience.h"

#include <cmath>

namespace treadle::callbacks {
bool Patience::step(double value, std::int64_t epochs) {
  improved_ = false;
  reason_.clear();
  if (!std::isfinite(value)) {
    reason_ = "the monitored value is not a number";
    return true;
  }
  if (!started_) {
    started_ = improved_ = true;
    smoothed_ = best_ = value;
    return false;
  }
  smoothed_ = options_.alpha * value + (1 - options_.alpha) * smoothed_;
  const double gain =
      options_.direction == Direction::kHigherIsBetter ? smoothed_ - best_ : best_ - smoothed_;
  if (gain > options_.min_delta) {
    improved_ = true;
    best_ = smoothed_;
    without_improvement_ = 0;
    return false;
  }
  without_improvement_ += epochs;
  if (without_improvement_ < options_.patience)
    return false;
  reason_ = "no improvement for " + std::to_string(without_improvement_) +
            (without_improvement_ == 1 ? " epoch" : " epochs");
  return true;
}

StateDict Patience::do_state() const {
  StateDict state;
  state.put("started", nlohmann::json(started_));
  state.put_number("smoothed", smoothed_);
  state.put_number("best", best_);
  state.put("without_improvement", nlohmann::json(without_improvement_));
  state.put("reason", nlohmann::json(reason_));
  return state;
}

void Patience::do_load_state(const StateDict& state) {
  started_ = state.value("started").get<bool>();
  smoothed_ = state.number("smoothed");
  best_ = state.number("best");
  without_improvement_ = state.value("without_improvement").get<std::int64_t>();
  reason_ = state.value("reason").get<std::string>();
}

}  // namespace treadle::callbacks

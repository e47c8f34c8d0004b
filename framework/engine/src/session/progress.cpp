#include "session/progress.h"

#include <algorithm>

#include <nlohmann/json.hpp>

namespace treadle::engine {

std::optional<std::int64_t> Progress::total_steps() const {
  std::optional<std::int64_t> total = limits_.steps;
  if (limits_.epochs && limits_.batches_per_epoch) {
    const std::int64_t of_epochs = *limits_.epochs * *limits_.batches_per_epoch;
    total = std::min(of_epochs, total.value_or(of_epochs));
  }
  return total;
}

double Progress::seconds() const {
  const std::chrono::duration<double> here = std::chrono::steady_clock::now() - started_;
  return earlier_seconds_ + here.count();
}

void Progress::end_step() {
  ++steps_;
  ++batches_;
}

void Progress::end_epoch() {
  ++epochs_;
  batches_ = 0;
}

bool Progress::stop(const std::string& reason) {
  if (is_ending())
    return false;
  stop_reason_ = reason.empty() ? "asked for" : reason;
  return true;
}

void Progress::save_in(StateDict& state) const {
  state.put("epoch", nlohmann::json(epochs_));
  state.put("step", nlohmann::json(steps_));
  state.put("batch", nlohmann::json(batches_));
  state.put("stop_reason", nlohmann::json(stop_reason_));
  state.put("seconds", nlohmann::json(seconds()));
}

void Progress::load_from(const StateDict& state) {
  epochs_ = state.value("epoch").get<std::int64_t>();
  steps_ = state.value("step").get<std::int64_t>();
  batches_ = state.value("batch").get<std::int64_t>();
  stop_reason_ = state.value("stop_reason").get<std::string>();
  earlier_seconds_ = state.value("seconds").get<double>();
}

}  // namespace treadle::engine

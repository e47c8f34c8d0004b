#include "session/callback_host.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <nlohmann/json.hpp>

#include <treadle/base/error.h>

namespace treadle::engine {
namespace {

std::string state_of_callback(std::size_t index) {
  return "callback-" + std::to_string(index);
}

}  // namespace

CallbackHost::CallbackHost(const SessionParts& parts, HistoryNumbers& numbers,
                           WeightChoice& weights, Rates& rates)
    : parts_(parts),
      numbers_(numbers),
      weights_(weights),
      rates_(rates),
      name_(parts.context.fit().path()) {
  for (TrainingCallback* callback : callbacks()) {
    if (callback->wants_steps())
      of_steps_.push_back(callback);
  }
  parts_.step.measure({!of_steps_.empty(), false});
}

void CallbackHost::begin() {
  for (TrainingCallback* callback : callbacks())
    callback->begin(*this);
  has_begun_ = true;
}

/// Callbacks want the numbers of the step: a device is waited for.
void CallbackHost::after_step() {
  if (of_steps_.empty())
    return;
  const StepRecord& now = parts_.step.record();
  StepReport report{steps_done(), rates_.last(), now.batch.value(), {}, now.skipped_in_a_row == 0};
  if (logs_gradient_norm_)
    report.gradient_norm = now.gradient_norm;
  for (TrainingCallback* callback : of_steps_)
    callback->after_step(report, *this);
}

void CallbackHost::after_epoch(EpochSummary& row) {
  for (TrainingCallback* callback : callbacks()) {
    callback->after_epoch(row, *this);
    // Callbacks see the values that earlier ones logged.
    row.logged.insert(row.logged.end(), logged_.begin(), logged_.end());
    logged_.clear();
  }
}

void CallbackHost::end_training(const std::string& reason) {
  if (parts_.progress.stop(reason))
    add_decision("stopped: " + parts_.progress.stop_reason());
}

std::vector<std::string> CallbackHost::take_decisions() {
  return std::exchange(decisions_, {});
}

std::int64_t CallbackHost::epochs(const Duration& duration) const {
  const std::optional<std::int64_t> batches = parts_.progress.limits().batches_per_epoch;
  if (!batches && duration.unit == Duration::Unit::kEpochs)
    return static_cast<std::int64_t>(std::ceil(duration.value));
  if (!batches) {
    throw TrainingError("\"" + duration.text() +
                        "\" cannot be counted in epochs: how many steps one has is known at its "
                        "end; give it in epochs, or set training.steps_per_epoch");
  }
  return (steps(duration) + *batches - 1) / *batches;
}

void CallbackHost::average_weights(const WeightAveraging& averaging) {
  expect_beginning("average_weights");
  weights_.average(
      {steps(averaging.start), std::max<std::int64_t>(1, steps(averaging.every)), averaging.decay});
}

void CallbackHost::end_with_kept_weights(const std::string& chosen_by) {
  expect_beginning("end_with_kept_weights");
  weights_.end_with_kept(chosen_by);
}

void CallbackHost::log_gradient_norm() {
  expect_beginning("log_gradient_norm");
  logs_gradient_norm_ = true;
  parts_.step.measure({!of_steps_.empty(), true});
}

void CallbackHost::tolerate_skipped_steps(std::int64_t most_in_a_row) {
  expect_beginning("tolerate_skipped_steps");
  tolerated_skips_ = std::max(tolerated_skips_, most_in_a_row);
  parts_.step.tolerate_skipped(tolerated_skips_);
}

void CallbackHost::changed(const std::string& what) {
  last_changed_epoch_ = parts_.progress.epoch_of_last_step();
  add_decision(what);
  note(name_ + ", epoch " + std::to_string(last_changed_epoch_) + ": " + what);
}

void CallbackHost::expect_beginning(const char* function) const {
  TREADLE_EXPECTS(!has_begun_, std::string(function) + "() belongs in begin()");
}

void CallbackHost::save_in(StateDict& state) const {
  state.put("last_changed_epoch", nlohmann::json(last_changed_epoch_));
  state.put("epoch_changes", nlohmann::json(decisions_));
  for (std::size_t i = 0; i < callbacks().size(); ++i) {
    if (const StateDict callback = callbacks()[i]->state(); !callback.empty())
      state.put(state_of_callback(i), callback);
  }
}

void CallbackHost::load_from(const StateDict& state) {
  last_changed_epoch_ = state.value("last_changed_epoch").get<std::int64_t>();
  decisions_ = state.value("epoch_changes").get<std::vector<std::string>>();
  for (std::size_t i = 0; i < callbacks().size(); ++i) {
    if (state.has_part(state_of_callback(i)))
      callbacks()[i]->load_state(state.part(state_of_callback(i)));
  }
}

}  // namespace treadle::engine

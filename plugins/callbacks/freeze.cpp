#include "freeze.h"

#include <algorithm>

#include "named_parameters.h"

namespace treadle::callbacks {
namespace {

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words)
    text += (text.empty() ? "" : " ") + word;
  return text;
}

}  // namespace

Freeze::Freeze(const Config& config) : config_(config) {
  if (config.has("until"))
    until_.emplace(Condition::configured_by(config.child("until")));
}

void Freeze::do_begin(TrainingControl& control) {
  parameters_ = parameters_named(control.model(), config_, "parameters");
  for (at::Tensor& parameter : parameters_)
    parameter.set_requires_grad(false);
  const std::vector<at::Tensor> all = control.model().parameters();
  if (std::none_of(all.begin(), all.end(),
                   [](const at::Tensor& parameter) { return parameter.requires_grad(); }))
    config_.fail("parameters", "this leaves nothing to train");
  if (until_)
    until_->begin(control,
                  "unfreezing " + joined(config_.get<std::vector<std::string>>("parameters")));
}

void Freeze::do_after_epoch(const EpochSummary& epoch, TrainingControl& control) {
  if (!until_ || !is_frozen_)
    return;
  if (!until_->holds(epoch, control))
    return;
  unfreeze();
  control.changed("unfrozen " + joined(config_.get<std::vector<std::string>>("parameters")) + ": " +
                  until_->condition().text());
}

void Freeze::unfreeze() {
  is_frozen_ = false;
  for (at::Tensor& parameter : parameters_)
    parameter.set_requires_grad(true);
}

StateDict Freeze::do_state() const {
  StateDict state;
  state.put("is_frozen", nlohmann::json(is_frozen_));
  if (until_)
    state.put("until", until_->state());
  return state;
}

void Freeze::do_load_state(const StateDict& state) {
  if (until_)
    until_->load_state(state.part("until"));
  if (!state.value("is_frozen").get<bool>())
    unfreeze();
}

}  // namespace treadle::callbacks

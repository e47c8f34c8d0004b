#include "decisions.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <ATen/ops/empty.h>

#include <treadle/base/error.h>
#include <treadle/core/history.h>

namespace treadle {
namespace {

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words)
    text += (text.empty() ? "" : " ") + word;
  return text;
}

/// "0.1": as short as it can be read back.
std::string factor_text(double factor) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, factor).ptr;
  return {text, end};
}

at::Tensor tensor_of(const std::vector<double>& values) {
  const at::Tensor tensor = at::empty({static_cast<std::int64_t>(values.size())}, at::kDouble);
  std::copy(values.begin(), values.end(), tensor.data_ptr<double>());
  return tensor;
}

bool all_known(const Condition& condition, const std::vector<std::string>& known) {
  return std::all_of(condition.names().begin(), condition.names().end(),
                     [&](const std::string& name) {
                       return std::find(known.begin(), known.end(), name) != known.end();
                     });
}

}  // namespace

DecisionPlan DecisionPlan::configured_by(const Config& config) {
  DecisionPlan plan;
  if (config.has("rate")) {
    for (const Config& rate : config.children("rate")) {
      plan.rates.push_back({Condition::configured_by(rate.child("when")),
                            rate.get<double>("factor"), rate.find<std::int64_t>("times")});
      // A condition that only waits holds ever after.
      if (plan.rates.back().when.names().empty() && !plan.rates.back().times)
        plan.rates.back().times = 1;
    }
  }
  if (config.has("unfreeze")) {
    for (const Config& unfreezing : config.children("unfreeze")) {
      plan.unfreezings.push_back({Condition::configured_by(unfreezing.child("when")),
                                  unfreezing.get<std::vector<std::string>>("parameters"),
                                  plan.unfreezings.size()});
    }
  }
  if (config.has("stop"))
    plan.stop = Condition::configured_by(config.child("stop").child("when"));
  return plan;
}

std::vector<const Condition*> DecisionPlan::conditions() const {
  std::vector<const Condition*> all;
  for (const Rate& rate : rates)
    all.push_back(&rate.when);
  for (const Unfreezing& unfreezing : unfreezings)
    all.push_back(&unfreezing.when);
  if (stop)
    all.push_back(&*stop);
  return all;
}

DecisionPlan DecisionPlan::for_refit(const std::vector<std::string>& known,
                                     std::vector<std::string>& left_out) const {
  DecisionPlan plan = *this;
  const auto is_unknown = [&](const Condition& condition, const std::string& what) {
    if (all_known(condition, known))
      return false;
    left_out.push_back(what + " when " + condition.text());
    return true;
  };
  std::erase_if(plan.rates,
                [&](const Rate& rate) { return is_unknown(rate.when, "changing the rate"); });
  std::erase_if(plan.unfreezings, [&](const Unfreezing& unfreezing) {
    return is_unknown(unfreezing.when, "unfreezing " + joined(unfreezing.parameters));
  });
  plan.stop.reset();  // it trains as long as it is told to
  return plan;
}

Decisions::Decisions(DecisionPlan plan, std::int64_t steps_per_epoch, std::int64_t total_steps)
    : plan_(std::move(plan)),
      steps_per_epoch_(steps_per_epoch),
      total_steps_(total_steps),
      rates_made_(plan_.rates.size(), 0),
      unfrozen_(plan_.unfreezings.size(), false) {
  for (const Condition* condition : plan_.conditions()) {
    for (const std::string& name : condition->names())
      followed_[name];
  }
}

void Decisions::follow(const EpochSummary& row) {
  ++epochs_;
  for (auto& [name, followed] : followed_) {
    const std::optional<MetricValue> value = find_value(row, name);
    if (!value) {
      throw TrainingError(
          "\"" + name +
          "\" was known at first and no longer is; a model or metric must give the same "
          "names for any rows, watch another or mend its plugin");
    }
    followed.values.push_back(value->value);
    followed.direction = value->direction;
  }
}

bool Decisions::holds(const Condition& condition) const {
  return condition.holds(epochs_, steps_per_epoch_, total_steps_, [&](const std::string& name) {
    const Followed& followed = followed_.find(name)->second;
    return Trend(followed.values, followed.direction);
  });
}

Decisions::Made Decisions::after(const EpochSummary& row) {
  Made made;
  follow(row);
  for (std::size_t i = 0; i < plan_.rates.size(); ++i) {
    const DecisionPlan::Rate& rate = plan_.rates[i];
    if ((rate.times && rates_made_[i] >= *rate.times) || !holds(rate.when))
      continue;
    ++rates_made_[i];
    rate_factor_ *= rate.factor;
    made.texts.push_back("learning rate times " + factor_text(rate.factor) + ": " +
                         rate.when.text());
    break;
  }
  for (std::size_t i = 0; i < plan_.unfreezings.size(); ++i) {
    if (unfrozen_[i] || !holds(plan_.unfreezings[i].when))
      continue;
    unfrozen_[i] = true;
    made.unfrozen = plan_.unfreezings[i].entry;
    made.texts.push_back("unfrozen " + joined(plan_.unfreezings[i].parameters) + ": " +
                         plan_.unfreezings[i].when.text());
    break;
  }
  if (!made.texts.empty()) {
    for (auto& [name, followed] : followed_)
      followed.values.clear();
  } else if (plan_.stop && holds(*plan_.stop)) {
    made.stop_reason = plan_.stop->text();
    made.texts.push_back("stopped: " + made.stop_reason);
  }
  return made;
}

std::vector<std::size_t> Decisions::unfrozen() const {
  std::vector<std::size_t> entries;
  for (std::size_t i = 0; i < unfrozen_.size(); ++i) {
    if (unfrozen_[i])
      entries.push_back(plan_.unfreezings[i].entry);
  }
  return entries;
}

StateDict Decisions::do_state() const {
  StateDict state;
  state.put("epochs", nlohmann::json(epochs_));
  state.put_number("rate_factor", rate_factor_);
  state.put("rates_made", nlohmann::json(rates_made_));
  state.put("unfrozen", nlohmann::json(unfrozen_));
  nlohmann::json names = nlohmann::json::array();
  nlohmann::json directions = nlohmann::json::array();
  for (const auto& [name, followed] : followed_) {
    if (!followed.values.empty())
      state.put("values-" + std::to_string(names.size()), tensor_of(followed.values));
    names.push_back(name);
    directions.push_back(static_cast<int>(followed.direction));
  }
  state.put("names", std::move(names));
  state.put("directions", std::move(directions));
  return state;
}

void Decisions::do_load_state(const StateDict& state) {
  epochs_ = state.value("epochs").get<std::int64_t>();
  rate_factor_ = state.number("rate_factor");
  rates_made_ = state.value("rates_made").get<std::vector<std::int64_t>>();
  unfrozen_ = state.value("unfrozen").get<std::vector<bool>>();
  const nlohmann::json& names = state.value("names");
  const nlohmann::json& directions = state.value("directions");
  if (rates_made_.size() != plan_.rates.size() || unfrozen_.size() != plan_.unfreezings.size() ||
      names.size() != followed_.size() || directions.size() != followed_.size()) {
    throw StorageError("the saved decisions belong to a training with other conditions");
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto found = followed_.find(names[i].get<std::string>());
    if (found == followed_.end())
      throw StorageError("the saved decisions belong to a training with other conditions");
    const std::string saved = "values-" + std::to_string(i);
    found->second.values.clear();
    if (state.has_tensor(saved)) {
      const at::Tensor& values = state.tensor(saved);
      const double* data = values.data_ptr<double>();
      found->second.values.assign(data, data + values.numel());
    }
    found->second.direction = static_cast<Direction>(directions[i].get<int>());
  }
}

}  // namespace treadle

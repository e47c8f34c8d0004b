#include "followed_condition.h"

#include <algorithm>
#include <utility>

#include <ATen/ops/empty.h>

#include <treadle/base/error.h>

#include "monitor.h"

namespace treadle::callbacks {
namespace {

at::Tensor tensor_of(const std::vector<double>& values) {
  const at::Tensor tensor = at::empty({static_cast<std::int64_t>(values.size())}, at::kDouble);
  std::copy(values.begin(), values.end(), tensor.data_ptr<double>());
  return tensor;
}

}  // namespace

void FollowedCondition::begin(TrainingControl& control, const std::string& action) {
  after_ = condition_.after() ? control.steps(*condition_.after()) : 0;
  for (const std::string& name : condition_.names()) {
    followed_[name];
    const std::vector<std::string>& known = control.logged_names();
    if (control.is_refit() && std::find(known.begin(), known.end(), name) == known.end()) {
      is_active_ = false;
      control.note(control.name() + " has no validation rows; left out: " + action + " when " +
                   condition_.text());
      return;
    }
    control.expect_logged(name, condition_.config(), "monitor");
  }
}

void FollowedCondition::take(const EpochSummary& row, std::int64_t last_changed_epoch) {
  for (auto& [name, followed] : followed_) {
    if (const std::optional<MetricValue> value = value_in(row, name)) {
      followed.epochs.push_back(row.epoch);
      followed.values.push_back(value->value);
      followed.direction = value->direction;
    }
    const auto kept =
        std::upper_bound(followed.epochs.begin(), followed.epochs.end(), last_changed_epoch);
    followed.values.erase(followed.values.begin(),
                          followed.values.begin() + (kept - followed.epochs.begin()));
    followed.epochs.erase(followed.epochs.begin(), kept);
  }
}

bool FollowedCondition::holds(const EpochSummary& row, const TrainingControl& control) {
  if (!is_active_)
    return false;
  take(row, control.last_changed_epoch());
  if (control.steps_done() < after_)
    return false;
  return condition_.holds([&](const std::string& name) {
    const Values& followed = followed_.find(name)->second;
    return Trend(followed.values, followed.direction);
  });
}

StateDict FollowedCondition::do_state() const {
  StateDict state;
  nlohmann::json all = nlohmann::json::array();
  for (const auto& [name, followed] : followed_) {
    if (!followed.values.empty())
      state.put("values-" + std::to_string(all.size()), tensor_of(followed.values));
    all.push_back({{"name", name},
                   {"epochs", followed.epochs},
                   {"direction", static_cast<int>(followed.direction)}});
  }
  state.put("followed", std::move(all));
  return state;
}

void FollowedCondition::do_load_state(const StateDict& state) {
  const nlohmann::json& all = state.value("followed");
  if (all.size() != followed_.size())
    throw StorageError("the saved condition is one of other numbers");
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto found = followed_.find(all[i].at("name").get<std::string>());
    if (found == followed_.end())
      throw StorageError("the saved condition is one of other numbers");
    Values& followed = found->second;
    followed.epochs = all[i].at("epochs").get<std::vector<std::int64_t>>();
    followed.direction = static_cast<Direction>(all[i].at("direction").get<int>());
    followed.values.clear();
    const std::string saved = "values-" + std::to_string(i);
    if (state.has_tensor(saved)) {
      const at::Tensor& values = state.tensor(saved);
      const double* data = values.data_ptr<double>();
      followed.values.assign(data, data + values.numel());
    }
    if (followed.values.size() != followed.epochs.size())
      throw StorageError("the saved condition has values without epochs");
  }
}

}  // namespace treadle::callbacks

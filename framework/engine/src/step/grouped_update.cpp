#include "grouped_update.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <treadle/base/error.h>
#include <treadle/core/training/optimizer_abilities.h>

namespace treadle::engine {
namespace {

constexpr const char* kMasters = "masters";

std::string part_name(std::size_t group) {
  return "group-" + std::to_string(group);
}

/// The state of an optimizer has its slots by name, beside what the framework keeps.
void expect_own_names(const std::vector<SlotSpec>& specs) {
  std::set<std::string> taken = {"segments", "steps"};
  for (const SlotSpec& spec : specs) {
    const bool is_packed = spec.storage != SlotSpec::Storage::kFull;
    if (taken.insert(spec.name).second &&
        (!is_packed || taken.insert(spec.name + ".scales").second))
      continue;
    throw PluginError("an optimizer declares a slot \"" + spec.name +
                      "\", but that name is taken; rename the slot");
  }
}

bool same_vectors(const SlotSpec& a, const SlotSpec& b) {
  return a.name == b.name && a.kind == b.kind && a.initial == b.initial && a.storage == b.storage &&
         a.kind != SlotSpec::Kind::kScalar && a.kind != SlotSpec::Kind::kTensor;
}

}  // namespace

GroupedUpdate::GroupedUpdate(ParameterArena& arena, const Optimizer& rest,
                             std::span<const ParameterGroup> groups, ParameterView::Path path)
    : arena_(arena),
      specs_(rest.slots()),
      works_with_tensors_(path == ParameterView::Path::kTensors || !arena.parameters().is_cpu()) {
  groups_.reserve(groups.size() + 1);
  const auto add = [&](const Optimizer& optimizer, const std::vector<SlotSpec>& specs,
                       std::vector<bool> members) {
    expect_own_names(specs);
    groups_.push_back({optimizer, std::make_unique<OptimizerSlots>(specs, arena, members), nullptr,
                       std::move(members), optimizer.learning_rate() / rest.learning_rate()});
    Group& added = groups_.back();
    added.view = std::make_unique<ParameterView>(arena, *added.slots, path);
  };
  std::vector<std::vector<bool>> members = members_of(groups);
  add(rest, specs_, std::move(members.front()));
  groups_.front().rate_share = 1;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const std::vector<SlotSpec> specs = groups[i].optimizer->slots();
    add(*groups[i].optimizer, specs, std::move(members[i + 1]));
    share_slots(groups_.back(), specs);
  }
}

/// By group, the rest first; of the rest alone: empty.
std::vector<std::vector<bool>> GroupedUpdate::members_of(
    std::span<const ParameterGroup> groups) const {
  if (groups.empty())
    return {{}};
  std::map<std::string, std::size_t, std::less<>> segment_of;
  for (const Segment& segment : arena_.segments())
    segment_of.emplace(segment.name, segment_of.size());
  std::vector<std::vector<bool>> members{std::vector<bool>(segment_of.size(), true)};
  for (const ParameterGroup& group : groups) {
    members.emplace_back(segment_of.size(), false);
    for (const std::string& name : group.parameters) {
      const auto found = segment_of.find(name);
      TREADLE_EXPECTS(found != segment_of.end(), "the model has no parameter \"" + name + "\"");
      TREADLE_EXPECTS(members.front()[found->second],
                      "parameter \"" + name + "\" is in two groups");
      members.front()[found->second] = false;
      members.back()[found->second] = true;
    }
  }
  return members;
}

bool GroupedUpdate::has_evaluation_weights() const {
  return std::any_of(groups_.begin(), groups_.end(), [](const Group& group) {
    return group.optimizer.ask<EvaluationWeights>() != nullptr;
  });
}

at::Tensor GroupedUpdate::evaluation_weights() const {
  const at::NoGradGuard no_gradients;
  at::Tensor weights = arena_.parameters().clone();
  for (const Group& group : groups_) {
    const auto* const ability = group.optimizer.ask<EvaluationWeights>();
    if (ability == nullptr)
      continue;
    const at::Tensor all = ability->evaluation_weights(arena_.parameters(), *group.slots);
    if (group.members.empty())
      return all;
    for (std::size_t i = 0; i < group.members.size(); ++i) {
      const Segment& segment = arena_.segments()[i];
      if (group.members[i])
        weights.narrow(0, segment.offset, segment.size)
            .copy_(all.narrow(0, segment.offset, segment.size));
    }
  }
  return weights;
}

GroupedUpdate::~GroupedUpdate() = default;

void GroupedUpdate::share_slots(Group& group, const std::vector<SlotSpec>& specs) {
  group.slots->updates() = groups_.front().slots->updates();
  for (std::size_t i = 0; i < specs.size(); ++i) {
    for (std::size_t j = 0; j < specs_.size(); ++j) {
      if (same_vectors(specs[i], specs_[j]))
        group.slots->share(i, *groups_.front().slots, j);
    }
  }
}

template <typename Begin>
void GroupedUpdate::update_each(const Begin& begin) {
  for (Group& group : groups_) {
    const auto update = [&] {
      begin(group);
      group.optimizer.update(*group.view);
    };
    if (group.members.empty()) {
      update();
    } else {
      arena_.with_only(group.members, update);
    }
  }
  arena_.write_back();
}

void GroupedUpdate::set_rates(std::span<const double> rates) {
  TREADLE_EXPECTS(rates.empty() || rates.size() + 1 == groups_.size(), "a rate for each group");
  has_rates_ = !rates.empty();
  for (std::size_t i = 0; i < rates.size(); ++i) {
    Group& group = groups_[i + 1];
    group.rate = rates[i];
    if (works_with_tensors_) {
      if (!group.device_rate.defined())
        group.device_rate = at::zeros({}, arena_.parameters().options().dtype(at::kDouble));
      group.device_rate.fill_(rates[i]);
    }
  }
}

void GroupedUpdate::update(const StepInfo& info) {
  update_each([&](Group& group) {
    StepInfo its = info;
    its.learning_rate *= group.rate_share;
    if (has_rates_ && &group != &groups_.front())
      its.learning_rate = group.rate;
    group.view->begin_step(its);
  });
}

void GroupedUpdate::update(const StepTensors& step) {
  update_each([&](Group& group) {
    StepTensors its = step;
    if (has_rates_ && &group != &groups_.front()) {
      its.learning_rate = group.device_rate;
    } else if (group.rate_share != 1) {
      its.learning_rate = step.learning_rate * group.rate_share;
    }
    group.view->begin_step(its);
  });
}

StateDict GroupedUpdate::do_state() const {
  StateDict state = groups_.front().slots->state();
  for (std::size_t i = 1; i < groups_.size(); ++i) {
    // What is shared is there already.
    StateDict own;
    const StateDict all = groups_[i].slots->state();
    for (const auto& [name, tensor] : all.tensors()) {
      if (!state.has_tensor(name) || !state.tensor(name).is_same(tensor))
        own.put(name, tensor);
    }
    state.put(part_name(i), std::move(own));
  }
  if (arena_.has_masters()) {
    StateDict masters;
    masters.put("parameters", arena_.parameters());
    state.put(kMasters, std::move(masters));
  }
  return state;
}

void GroupedUpdate::do_load_state(const StateDict& state) {
  groups_.front().slots->load_state(state);
  for (std::size_t i = 1; i < groups_.size(); ++i) {
    StateDict complete = groups_[i].slots->state();
    for (const auto& [name, tensor] : state.part(part_name(i)).tensors())
      complete.put(name, tensor);
    groups_[i].slots->load_state(complete);
  }
  if (!arena_.has_masters())
    return;
  const at::Tensor& masters = state.part(kMasters).tensor("parameters");
  if (masters.sizes() != arena_.parameters().sizes()) {
    throw StorageError("the saved float32 masters belong to a model with other parameters");
  }
  arena_.parameters().copy_(masters);
  arena_.write_back();
}

}  // namespace treadle::engine

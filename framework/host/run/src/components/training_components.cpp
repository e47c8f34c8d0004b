#include "components/training_components.h"

#include <fnmatch.h>

#include <algorithm>
#include <functional>
#include <utility>

#include <treadle/core/components/module_state.h>

#include "document/document_slots.h"
#include "document/no_steps.h"

namespace treadle::internal {
namespace {

/// With every parameter in a group, a value that each group has as well is nobody's. Not so the
/// learning rate: it is what a schedule changes.
void expect_rest_is_used(const Config& optimizer, const nlohmann::json& schema) {
  const nlohmann::json properties = schema.value("properties", nlohmann::json::object());
  const std::vector<Config> groups = optimizer.children("groups");
  for (const auto& [key, property] : properties.items()) {
    const bool is_given = optimizer.has(key) && key != "learning_rate" &&
                          optimizer.json()[key] != property.value("default", nlohmann::json());
    if (is_given && std::all_of(groups.begin(), groups.end(),
                                [&key = key](const Config& group) { return group.has(key); })) {
      optimizer.fail(key,
                     "has no effect: every parameter is in a group, and each group has its own; "
                     "leave it out here, or there");
    }
  }
}

/// Of a kind of its own, or the document's with other values.
std::unique_ptr<Optimizer> make_group_optimizer(const Runtime& runtime, const Config& slot,
                                                const Config& group) {
  const bool has_own_kind = group.has("optimizer");
  nlohmann::json parameters = component_config(slot, "optimizer").json();
  for (const auto& [key, value] : group.json().items()) {
    if (key == "parameters" || key == "schedule" || key == "optimizer")
      continue;
    if (has_own_kind)
      group.fail(key, "the group has an optimizer of its own; set this in its \"optimizer\"");
    parameters[key] = value;
  }
  if (has_own_kind)
    return make_nested<Optimizer>(runtime, group.child("optimizer"));
  return runtime.registry().make<Optimizer>(name_in(slot),
                                            Config(parameters, group.pointer(), group.places()));
}

/// With its warm-up, where it has one.
std::unique_ptr<LearningRateSchedule> schedule_in(const Runtime& runtime, const Config& slot) {
  auto schedule = make_in<LearningRateSchedule>(runtime, slot, "schedule");
  if (!slot.has("warmup"))
    return schedule;
  if (!slot.json().at("warmup").is_object())
    return std::make_unique<WarmedUpSchedule>(std::move(schedule), slot.get<Duration>("warmup"));
  const Config warmup = slot.child("warmup");
  return std::make_unique<WarmedUpSchedule>(std::move(schedule), warmup.get<Duration>("length"),
                                            warmup.find<double>("start_factor"));
}

}  // namespace

std::unique_ptr<Optimizer> make_optimizer(const Runtime& runtime,
                                          const ResolvedWorkflow& workflow) {
  if (!workflow.resolved.contains("optimizer"))
    return std::make_unique<NoOptimizer>();
  return make_in<Optimizer>(runtime, workflow.slot("optimizer"), "optimizer");
}

std::vector<OptimizerGroup> make_optimizer_groups(const Runtime& runtime,
                                                  const ResolvedWorkflow& workflow,
                                                  const Model& model) {
  std::vector<OptimizerGroup> groups;
  if (!workflow.resolved.contains("optimizer"))
    return groups;
  const Config slot = workflow.slot("optimizer");
  if (!slot.has("groups"))
    return groups;
  const std::vector<std::string> all = distinct_parameter_names(model);
  std::vector<std::string> left = all;
  const std::vector<Config> slots = slot.children("groups");
  for (const Config& group : slots) {
    groups.push_back(
        {make_group_optimizer(runtime, slot, group),
         {},
         group.has("schedule") ? schedule_in(runtime, group.child("schedule")) : nullptr});
    for (const std::string& pattern : group.get<std::vector<std::string>>("parameters")) {
      const auto matches = [&](const std::string& name) {
        return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
      };
      const auto taken = std::stable_partition(left.begin(), left.end(), std::not_fn(matches));
      groups.back().parameters.insert(groups.back().parameters.end(), taken, left.end());
      left.erase(taken, left.end());
    }
    if (groups.back().parameters.empty()) {
      std::string names;
      for (const std::string& name : all)
        names += (names.empty() ? "" : ", ") + name;
      group.fail(
          "parameters",
          "no parameter matches, or an earlier group has all that do; the model's are " + names);
    }
  }
  if (!slots.empty() && slots.back().json().size() == 1) {
    // Not so an earlier one: it keeps its parameters from those after it.
    slots.back().fail(
        "parameters",
        "the last group has no value of its own, and no effect; give it one, or leave "
        "it out");
  }
  if (!groups.empty() && left.empty())
    expect_rest_is_used(slot, *runtime.schemas().find("optimizer", name_in(slot)).schema);
  return groups;
}

std::unique_ptr<LearningRateSchedule> make_schedule(const Runtime& runtime,
                                                    const ResolvedWorkflow& workflow) {
  if (!workflow.resolved.contains("schedule"))
    return std::make_unique<NoSchedule>();
  return schedule_in(runtime, workflow.slot("schedule"));
}

std::unique_ptr<TrainingWorkflow> make_training(const Runtime& runtime,
                                                const ResolvedWorkflow& workflow) {
  return make_in<TrainingWorkflow>(runtime, workflow.slot("training"), "training");
}

std::unique_ptr<Sampler> make_sampler(const Runtime& runtime, const ResolvedWorkflow& workflow) {
  const Config slot = workflow.slot("training");
  if (!slot.has("sampler"))
    return nullptr;
  if (slot.has("shuffle"))
    slot.fail("shuffle", "has no effect beside \"sampler\", which decides the order; remove it");
  return make_nested<Sampler>(runtime, slot.child("sampler"));
}

std::unique_ptr<GradientStrategy> make_gradients(const Runtime& runtime,
                                                 const ResolvedWorkflow& workflow) {
  const Config slot = workflow.slot("training");
  return slot.has("gradients") ? make_nested<GradientStrategy>(runtime, slot.child("gradients"))
                               : nullptr;
}

std::vector<std::unique_ptr<TrainingCallback>> make_callbacks(const Runtime& runtime,
                                                              const ResolvedWorkflow& workflow) {
  std::vector<std::unique_ptr<TrainingCallback>> callbacks;
  const Config slot = workflow.slot("training");
  for (const auto& [key, property] : slot_schema("training").at("properties").items()) {
    if (property.value("x-treadle-component", "") == "callback" && slot.has(key))
      callbacks.push_back(make_nested<TrainingCallback>(runtime, slot.child(key)));
  }
  for (const Config& callback : slot.children("callbacks"))
    callbacks.push_back(make_nested<TrainingCallback>(runtime, callback));
  return callbacks;
}

std::vector<GivenWeights> given_weights(const ResolvedWorkflow& workflow) {
  std::vector<GivenWeights> given;
  const Config slot = workflow.slot("model");
  if (!slot.has("weights"))
    return given;
  const auto add = [&](const Config& file) {
    const auto from = file.get_or<std::string>("from", "");
    given.push_back({file.get<std::string>("path"), file.get<bool>("strict"), from,
                     file.get_or<std::string>("to", from)});
  };
  if (slot.json().at("weights").is_object()) {
    add(slot.child("weights"));
  } else {
    for (const Config& file : slot.children("weights"))
      add(file);
  }
  return given;
}

}  // namespace treadle::internal

#include "document/document_slots.h"

#include <algorithm>

namespace treadle::internal {
namespace {

constexpr std::pair<const char*, TargetKind> kTargets[] = {
    {"classes", TargetKind::kClasses},
    {"numbers", TargetKind::kNumbers},
    {"labels", TargetKind::kLabels},
    {"distribution", TargetKind::kDistribution}};

}  // namespace

std::string name_in(const Config& slot) {
  return slot.get<std::string>("use");
}

const nlohmann::json& slot_schema(std::string_view key) {
  static const nlohmann::json properties = workflow_schema().at("properties");
  const nlohmann::json& schema = properties.at(std::string(key));
  if (schema.contains("items"))
    return schema.at("items");
  return schema.contains("anyOf") ? schema.at("anyOf").at(0) : schema;
}

std::vector<TargetKind> target_kinds(const nlohmann::json& schema) {
  std::vector<TargetKind> kinds;
  const auto found = schema.find("x-treadle-target");
  if (found == schema.end())
    return kinds;
  const nlohmann::json words = found->is_array() ? *found : nlohmann::json::array({*found});
  for (const nlohmann::json& word : words) {
    for (const auto& [name, kind] : kTargets) {
      if (word == name)
        kinds.push_back(kind);
    }
  }
  return kinds;
}

Precision precision_of(const ResolvedWorkflow& workflow) {
  return precision_named(workflow.precision);
}

engine::ThreadBudget budget_for(const ResolvedWorkflow& workflow, int otherwise) {
  const nlohmann::json& resources = workflow.resolved.at("resources");
  const nlohmann::json& workers = resources.at("workers");
  return engine::ThreadBudget(workers.is_number() ? workers.get<int>() : otherwise,
                              resources.at("intra_op_threads").get<int>());
}

Config component_config(const Config& slot, std::string_view slot_key) {
  return Config(component_parameters(slot.json(), slot_schema(slot_key)), slot.pointer(),
                slot.places());
}

Config nested_config(const Config& slot) {
  return Config(component_parameters(slot.json(), nlohmann::json::object()), slot.pointer(),
                slot.places());
}

std::vector<Config> slots_of(const ResolvedWorkflow& workflow, std::string_view key) {
  const std::string name(key);
  std::vector<Config> slots;
  if (!workflow.resolved.contains(name))
    return slots;
  const nlohmann::json& given = workflow.resolved.at(name);
  if (given.is_object())
    return {workflow.slot(key)};
  for (std::size_t i = 0; i < given.size(); ++i) {
    slots.emplace_back(given[i], "/" + name + "/" + std::to_string(i), workflow.document);
  }
  return slots;
}

}  // namespace treadle::internal

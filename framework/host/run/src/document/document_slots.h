#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <treadle/core/data/data_spec.h>
#include <treadle/core/precision/precision.h>
#include <treadle/engine/thread_budget.h>
#include <treadle/host/run/runtime.h>

namespace treadle::internal {

/// The name that a slot of the document uses.
std::string name_in(const Config& slot);

/// The schema of a slot of the document; of one slot where the document may have a list of them.
const nlohmann::json& slot_schema(std::string_view key);

/// The part of a slot that is the component's: without `use` and without the slot's own properties.
Config component_config(const Config& slot, std::string_view slot_key);

/// Those under a key of the document, which may have one or a list.
std::vector<Config> slots_of(const ResolvedWorkflow& workflow, std::string_view key);

/// The component in a slot of the document.
template <typename Interface>
std::unique_ptr<Interface> make_in(const Runtime& runtime, const Config& slot,
                                   std::string_view key) {
  return runtime.registry().make<Interface>(name_in(slot), component_config(slot, key));
}

/// The same of a slot within another, which has no properties of its own.
Config nested_config(const Config& slot);
template <typename Interface>
std::unique_ptr<Interface> make_nested(const Runtime& runtime, const Config& slot) {
  return runtime.registry().make<Interface>(name_in(slot), nested_config(slot));
}

/// All under a key.
template <typename Interface>
std::vector<std::unique_ptr<Interface>> make_each(const Runtime& runtime,
                                                  const ResolvedWorkflow& workflow,
                                                  std::string_view key) {
  std::vector<std::unique_ptr<Interface>> made;
  for (const Config& slot : slots_of(workflow, key))
    made.push_back(make_in<Interface>(runtime, slot, key));
  return made;
}

/// The kinds of target a loss or metric works on, by its schema; empty: it does not say.
std::vector<TargetKind> target_kinds(const nlohmann::json& schema);

/// The threads that the document's resources ask for.
engine::ThreadBudget budget_for(const ResolvedWorkflow& workflow, int otherwise = 0);

Precision precision_of(const ResolvedWorkflow& workflow);

}  // namespace treadle::internal

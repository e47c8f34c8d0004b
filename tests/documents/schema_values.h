#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "drawing.h"

/// Values drawn from schemas: of whatever components the catalog has.
namespace treadle::testing {

/// Where a value stands.
struct Spot {
  std::string component;                       ///< "training/standard"; empty at the top level
  std::string key;                             ///< the nearest key above it
  const nlohmann::json* fallback = nullptr;    ///< the default of that key
  const nlohmann::json* parameters = nullptr;  ///< of the component: what parameter groups override
  int depth = 0;
};

/// A legal value, as far as the schema and the hints can say.
nlohmann::json draw_value(Drawing& drawing, const nlohmann::json& schema, const Spot& spot);

/// A component that fits into the slot, with some of its parameters.
nlohmann::json draw_component(Drawing& drawing, const nlohmann::json& slot, const Spot& spot);
/// That one.
nlohmann::json draw_component(Drawing& drawing, const nlohmann::json& slot, const std::string& name,
                              const Spot& spot);

/// Whether a loss or metric works on that kind of target, by its schema.
bool works_on(const nlohmann::json& component, TargetKind kind);
/// The names of the components for this interface that work on that kind.
std::vector<std::string> components_for(const Runtime& runtime, const std::string& interface_word,
                                        TargetKind kind);

}  // namespace treadle::testing

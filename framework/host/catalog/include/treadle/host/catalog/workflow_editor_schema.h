#pragma once

#include <span>
#include <string>

#include <nlohmann/json.hpp>

namespace treadle {

/// A component as documents may name it.
struct ListedComponent {
  std::string interface_word;    ///< "optimizer"
  std::string name;              ///< what follows "use": "adamw", or "plugin/adamw"
  const nlohmann::json* schema;  ///< not null; read during the call only
};

/// The schema of whole documents with these components, in plain draft-07, so that editors complete
/// and check keys: each slot has one if/then per component. It accepts the same documents as
/// resolve_workflow(), except that it checks neither ranges of durations, nor paths, nor which
/// components exclude each other.
nlohmann::json compose_editor_schema(std::span<const ListedComponent> components);

}  // namespace treadle

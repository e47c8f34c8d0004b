#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "drawing.h"
#include "schema_values.h"

/// What schemas cannot say, in one table: hints.cpp. A component without a line there is drawn from
/// its schema alone.
namespace treadle::testing {

struct Hint {
  int percent = 25;  ///< how often a key that may be left out is there
  /// Instead of a value drawn from the schema; nothing: the key is left out. Null: the schema.
  std::optional<nlohmann::json> (*draw)(Drawing&, const nlohmann::json& schema,
                                        const Spot&) = nullptr;
};

/// The hint for a key of a component, or for every key of that name; null without any.
const Hint* find_hint(const std::string& component, const std::string& key);

/// Keys of a component that are drawn together, because one must suit the other; null stands for
/// one that is left out.
nlohmann::json settled_keys(Drawing& drawing, const std::string& component);

/// What text under this key may name.
std::vector<std::string> known_names(const Drawing& drawing, const std::string& key);

/// Without these most models refuse the data.
std::vector<std::string> needed_transforms(const DataSpec& data);

/// Those among `names` that suit the document, or all.
std::vector<std::string> preferred(Drawing& drawing, const std::string& interface_word,
                                   std::vector<std::string> names);

}  // namespace treadle::testing

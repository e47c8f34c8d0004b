#pragma once

#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "drawing.h"
#include "schema_values.h"

/// The keys that a document has or could have, as its schemas say.
namespace treadle::testing {

struct DocumentKey {
  std::string label;    ///< "training/standard:early_stopping.patience", see KeyReason
  std::string pointer;  ///< where it stands, or would stand
  nlohmann::json schema;
  nlohmann::json parameters;  ///< of the component it belongs to
  std::string component;
  std::string key;
};

/// Every key of a resolved document, at any depth, and those it leaves out.
std::vector<DocumentKey> keys_of(const Runtime& runtime, const nlohmann::json& resolved);

/// The labels of the keys in which two resolved documents differ: of an object those within it, of
/// a component with another name the key it stands under. An object without keys is the same as
/// none.
std::set<std::string> changed_labels(const Runtime& runtime, const nlohmann::json& before,
                                     const nlohmann::json& after);

/// The document with a value drawn for the key, as the schema and the hints say; it may be wrong.
nlohmann::json with_drawn_value(Drawing& drawing, const nlohmann::json& resolved,
                                const DocumentKey& key);

/// The same, but a key that is there may also go.
nlohmann::json with_another_value(Drawing& drawing, const nlohmann::json& resolved,
                                  const DocumentKey& key);

}  // namespace treadle::testing

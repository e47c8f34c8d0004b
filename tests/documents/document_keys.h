#pragma once

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

/// The document with another value for the key; as the schema and the hints say, so it may be
/// wrong.
nlohmann::json with_another_value(Drawing& drawing, const nlohmann::json& resolved,
                                  const DocumentKey& key);

}  // namespace treadle::testing

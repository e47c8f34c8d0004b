#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include <treadle/base/schema.h>

namespace treadle {

/// Finds where in a document a key would be known that is unknown where it stands.
class KeyFinder {
 public:
  /// `document` is what is being checked, which stands at `pointer`. It may change between two
  /// questions, as long as it lives.
  KeyFinder(const nlohmann::json& document, const nlohmann::json& schema, const SchemaIndex& index,
            std::string pointer);

  /// How a message about `key`, found in the object at `from`, goes on: "; did you mean
  /// \"training.epochs\"?". Empty where the key belongs nowhere.
  std::string suggestion(const std::string& key, const std::string& from) const;

 private:
  const nlohmann::json& document_;
  const nlohmann::json& schema_;
  const SchemaIndex& index_;
  std::string pointer_;
};

}  // namespace treadle

#pragma once

#include <optional>
#include <string>

#include <nlohmann/json.hpp>

namespace treadle {

/// A second opinion on schemas, from valijson: it knows all of JSON Schema draft-07, while our own
/// walker knows what the messages of a document need.
///
/// Returns what is wrong with `schema` as a schema, or nothing.
std::optional<std::string> schema_mistake(const nlohmann::json& schema);

/// Whether `value` is valid under `schema`. Expects schema_mistake() to have found nothing.
bool is_valid(const nlohmann::json& value, const nlohmann::json& schema);

}  // namespace treadle

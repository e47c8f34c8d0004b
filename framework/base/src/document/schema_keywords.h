#pragma once

#include <regex>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

/// How schemas are read, for checking values and for checking schemas themselves.
namespace treadle {

/// The value of a keyword when it has the right kind, else null: a schema from a plugin of another
/// version must not crash anything.
const nlohmann::json* object_keyword(const nlohmann::json& schema, std::string_view keyword);
const nlohmann::json* array_keyword(const nlohmann::json& schema, std::string_view keyword);
const nlohmann::json* number_keyword(const nlohmann::json& schema, std::string_view keyword);
const nlohmann::json* any_keyword(const nlohmann::json& schema, std::string_view keyword);
/// Empty when there is none.
std::string_view text_keyword(const nlohmann::json& schema, std::string_view keyword);

/// The regular expression of `pattern`. Throws std::regex_error for one that is none, and for one
/// that could take its time or the stack: a schema may be a stranger's.
std::regex compile_pattern(const std::string& pattern);
inline constexpr std::size_t kLongestPattern = 200;

/// How one of JSON Schema's types is called in messages ("a whole number"); empty for no type.
std::string_view type_phrase(std::string_view type);
bool has_type(const nlohmann::json& value, std::string_view type);
inline bool is_text(const nlohmann::json& value) {
  return value.is_string();
}

/// The name of the component of a slot that names none, as text, else null.
const nlohmann::json* default_use(const nlohmann::json& slot);

/// Whether keys that `properties` does not list are wrong.
bool is_closed(const nlohmann::json& schema);

/// -1, 0 or 1: exact between integers of any sign, as doubles otherwise. Expects numbers.
int compare_numbers(const nlohmann::json& a, const nlohmann::json& b);

}  // namespace treadle

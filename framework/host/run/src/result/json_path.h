#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace treadle::internal {

/// The value at the end of a path of keys; null when there is none.
const nlohmann::json& at_path(const nlohmann::json& value,
                              std::initializer_list<std::string_view> path);

/// The same for text; empty when there is none.
std::string text_at_path(const nlohmann::json& value, std::initializer_list<std::string_view> path);

}  // namespace treadle::internal

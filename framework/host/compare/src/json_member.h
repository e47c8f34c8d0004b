#pragma once

#include <string_view>

#include <nlohmann/json.hpp>

namespace treadle::compare {

/// The member of an object; null where there is none, and of anything else. For files that another
/// version may have written.
const nlohmann::json& member(const nlohmann::json& value, std::string_view key);

}  // namespace treadle::compare

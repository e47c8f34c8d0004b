#pragma once

#include <istream>
#include <string_view>

#include <nlohmann/json.hpp>

/// JSON in files that may be a stranger's.
namespace treadle {

/// Arrays and objects within each other: more than any file of ours has, and few enough for code
/// that calls itself for each level, as nlohmann's dump() does.
inline constexpr int kMostJsonLevels = 256;

/// Discarded where the text is no JSON, or is nested deeper.
nlohmann::json parse_json(std::string_view text);
/// All that is left of the stream.
nlohmann::json parse_json(std::istream& stream);

}  // namespace treadle

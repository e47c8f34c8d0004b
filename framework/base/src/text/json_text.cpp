#include <treadle/base/json_text.h>

#include <iterator>
#include <string>

namespace treadle {
namespace {

/// Of JSON. Of other text it may be wrong, which the parser refuses.
bool is_too_deep(std::string_view text) {
  int level = 0;
  bool is_in_text = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') {
      is_in_text = !is_in_text;
    } else if (is_in_text) {
      i += c == '\\' ? 1 : 0;
    } else if (c == '[' || c == '{') {
      if (++level > kMostJsonLevels)
        return true;
    } else if (c == ']' || c == '}') {
      --level;
    }
  }
  return false;
}

}  // namespace

// The parser calls whoever wants to know the level for each value, which costs more than this scan.
nlohmann::json parse_json(std::string_view text) {
  if (is_too_deep(text))
    return nlohmann::json(nlohmann::json::value_t::discarded);
  return nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
}

nlohmann::json parse_json(std::istream& stream) {
  return parse_json(std::string(std::istreambuf_iterator<char>(stream), {}));
}

}  // namespace treadle

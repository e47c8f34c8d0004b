#include <treadle/base/json_words.h>

namespace treadle {
namespace {

constexpr std::size_t kLongestQuote = 80;

// Cuts between characters, never inside a UTF-8 sequence.
std::string cut(std::string text) {
  if (text.size() <= kLongestQuote)
    return text;
  std::size_t end = kLongestQuote;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80)
    --end;
  return text.substr(0, end) + "…";
}

std::string dump(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

std::string quote_text(std::string_view text) {
  return dump(nlohmann::json(text));
}

std::string quote_value(const nlohmann::json& value) {
  return cut(dump(value));
}

std::string describe_value(const nlohmann::json& value) {
  switch (value.type()) {
    case nlohmann::json::value_t::string:
      return quote_text(cut(value.get_ref<const std::string&>())) + " (text)";
    case nlohmann::json::value_t::array:
      return "an array";
    case nlohmann::json::value_t::object:
      return "an object";
    default:
      return dump(value);
  }
}

std::string child_pointer(std::string_view pointer, std::string_view key) {
  std::string child(pointer);
  child += '/';
  for (const char c : key) {
    if (c == '~') {
      child += "~0";
    } else if (c == '/') {
      child += "~1";
    } else {
      child += c;
    }
  }
  return child;
}

std::string child_pointer(std::string_view pointer, std::size_t index) {
  return std::string(pointer) + '/' + std::to_string(index);
}

std::string last_key(std::string_view pointer) {
  const std::size_t slash = pointer.rfind('/');
  if (slash == std::string_view::npos)
    return {};
  std::string key;
  for (std::size_t i = slash + 1; i < pointer.size(); ++i) {
    if (pointer[i] == '~' && i + 1 < pointer.size()) {
      key += pointer[++i] == '1' ? '/' : '~';
    } else {
      key += pointer[i];
    }
  }
  return key;
}

std::string_view parent_pointer(std::string_view pointer) {
  const std::size_t slash = pointer.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : pointer.substr(0, slash);
}

}  // namespace treadle

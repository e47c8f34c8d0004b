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

// The library escapes what JSON asks for. Delete and the C1 set, U+0080 to U+009F, are orders to a
// terminal as well.
std::string dump(const nlohmann::json& value) {
  const std::string text = value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string escaped;
  escaped.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0;
    const bool is_c1 = byte == 0xC2 && next < 0xA0;
    if (byte != 0x7F && !is_c1) {
      escaped += text[i];
      continue;
    }
    const unsigned code = is_c1 ? next : byte;
    escaped += "\\u00";
    escaped += kDigits[code >> 4];
    escaped += kDigits[code & 15];
    i += is_c1 ? 1 : 0;
  }
  return escaped;
}

}  // namespace

std::string quote_text(std::string_view text) {
  return dump(nlohmann::json(text));
}

std::string quoted_list(const std::vector<std::string>& words) {
  constexpr std::size_t kMostListed = 10;
  std::string text;
  for (std::size_t i = 0; i < words.size() && i < kMostListed; ++i)
    text += (i == 0 ? "" : ", ") + quote_text(words[i]);
  if (words.size() > kMostListed)
    text += " and " + std::to_string(words.size() - kMostListed) + " more";
  return text;
}

std::string plain_text(std::string_view text) {
  const std::string quoted = quote_text(text);
  std::string plain;
  plain.reserve(quoted.size());
  for (std::size_t i = 1; i + 1 < quoted.size(); ++i) {
    const bool escapes_itself =
        quoted[i] == '\\' && (quoted[i + 1] == '"' || quoted[i + 1] == '\\');
    plain += quoted[i + (escapes_itself ? 1 : 0)];
    i += escapes_itself ? 1 : 0;
  }
  return plain;
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

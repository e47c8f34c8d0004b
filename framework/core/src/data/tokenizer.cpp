#include <treadle/core/data/tokenizer.h>

#include <unordered_map>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/base/utf8.h>
#include <treadle/core/components/plugin_call.h>

namespace treadle {
namespace {

constexpr std::string_view kHexDigits = "0123456789ABCDEF";
constexpr std::string_view kEndOfText = "<end_of_text>";
constexpr std::string_view kUnknown = "<unknown>";

std::string byte_name(char byte) {
  const auto value = static_cast<unsigned char>(byte);
  return std::string("<0x") + kHexDigits[value >> 4] + kHexDigits[value & 15] + ">";
}

/// Orders to a terminal: U+0000 to U+001F, U+007F, U+0080 to U+009F.
bool is_control(std::string_view character) {
  const auto first = static_cast<unsigned char>(character.front());
  return first < 0x20 || first == 0x7F ||
         (first == 0xC2 && static_cast<unsigned char>(character[1]) < 0xA0);
}

std::string name_of_text(std::string_view text) {
  std::string name;
  while (!text.empty()) {
    const std::size_t length = utf8_character(text);
    const bool is_printable =
        length > 0 && !is_control(text.substr(0, length)) && text.front() != '<';
    const std::size_t taken = length == 0 ? 1 : length;
    for (std::size_t i = 0; !is_printable && i < taken; ++i)
      name += byte_name(text[i]);
    if (is_printable)
      name += text.substr(0, taken);
    text.remove_prefix(taken);
  }
  return name;
}

}  // namespace

Tokenizer::~Tokenizer() = default;

void Tokenizer::fit(std::span<const std::string_view> documents) {
  const auto size = [&] { return do_vocabulary_size(); };
  // The caller's mistake, not the plugin's.
  TREADLE_EXPECTS(call_plugin(*this, "vocabulary_size", size) == 0,
                  "a tokenizer gets its vocabulary once");
  call_plugin(*this, "fit", [&] { do_fit(documents); });
  if (call_plugin(*this, "vocabulary_size", size) <= 0)
    refuse_result(*this, "fit", "made no vocabulary");
}

std::int64_t Tokenizer::vocabulary_size() const {
  const std::int64_t size =
      call_plugin(*this, "vocabulary_size", [&] { return do_vocabulary_size(); });
  TREADLE_EXPECTS(size > 0, "the tokenizer has no vocabulary yet");
  if (size > kMostTokens)
    refuse_result(*this, "vocabulary_size", "is beyond what a vocabulary may have");
  return size;
}

std::vector<std::int64_t> Tokenizer::encode(std::string_view text) const {
  return call_plugin(*this, "encode", [&] { return do_encode(text); });
}

std::string Tokenizer::decode(std::span<const std::int64_t> tokens) const {
  const std::int64_t size = vocabulary_size();
  for (const std::int64_t token : tokens) {
    if (token < 0 || token >= size) {
      throw DataError("there is no token " + std::to_string(token) + " in a vocabulary of " +
                      std::to_string(size));
    }
  }
  return call_plugin(*this, "decode", [&] { return do_decode(tokens); });
}

bool Tokenizer::is_exact() const {
  return call_plugin(*this, "is_exact", [&] { return do_is_exact(); });
}

std::optional<std::int64_t> Tokenizer::end_of_text() const {
  return call_plugin(*this, "end_of_text", [&] { return do_end_of_text(); });
}

std::string Tokenizer::token(std::int64_t index) const {
  TREADLE_EXPECTS(index >= 0 && index < vocabulary_size(), "there is no such token");
  return call_plugin(*this, "token", [&] { return do_token(index); });
}

std::vector<std::string> token_names(const Tokenizer& tokenizer) {
  const std::int64_t size = tokenizer.vocabulary_size();
  const std::optional<std::int64_t> end = tokenizer.end_of_text();
  std::vector<std::string> names;
  names.reserve(static_cast<std::size_t>(size));
  std::unordered_map<std::string, int> times;
  for (std::int64_t i = 0; i < size; ++i) {
    std::string name = end == i ? std::string(kEndOfText) : name_of_text(tokenizer.token(i));
    if (name.empty())
      name = kUnknown;
    // Of SentencePiece two tokens may have one text.
    if (const int before = times[name]++; before > 0)
      name += "<" + std::to_string(before + 1) + ">";
    names.push_back(std::move(name));
  }
  return names;
}

std::int64_t bytes_of_token_name(std::string_view name) {
  std::int64_t bytes = 0;
  while (!name.empty()) {
    const bool is_escaped = name.front() == '<';
    bytes += !is_escaped || name.starts_with("<0x") ? 1 : 0;
    name.remove_prefix(is_escaped ? name.find('>') + 1 : 1);
  }
  return bytes;
}

}  // namespace treadle

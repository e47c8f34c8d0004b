#include "text_checks.h"

#include <array>
#include <cstdio>
#include <optional>

#include <treadle/base/error.h>
#include <treadle/base/utf8.h>

namespace treadle::tokenizers {
namespace {

std::string bad_byte(std::string_view text, std::size_t at) {
  std::array<char, 8> hex{};
  std::snprintf(hex.data(), hex.size(), "0x%02X", static_cast<unsigned char>(text[at]));
  return "byte " + std::to_string(at) + " (" + hex.data() +
         ") is not UTF-8; convert the text to UTF-8, or use the tokenizer \"bytes\"";
}

}  // namespace

void expect_utf8(std::string_view text) {
  if (const std::optional<std::size_t> bad = first_bad_utf8(text))
    throw DataError("the text cannot be encoded: " + bad_byte(text, *bad));
}

void expect_utf8(std::span<const std::string_view> documents) {
  for (std::size_t i = 0; i < documents.size(); ++i) {
    if (const std::optional<std::size_t> bad = first_bad_utf8(documents[i]))
      throw DataError("document " + std::to_string(i + 1) + ": " + bad_byte(documents[i], *bad));
  }
}

char32_t code_point_of(std::string_view character) {
  const auto first = static_cast<unsigned char>(character.front());
  if (first < 0x80)
    return first;
  char32_t value = first & (0x7FU >> character.size());
  for (const char byte : character.substr(1))
    value = (value << 6) | (static_cast<unsigned char>(byte) & 0x3F);
  return value;
}

std::string utf8_of(char32_t code_point) {
  const auto tail = [&](int shift) {
    return static_cast<char>(0x80 | ((code_point >> shift) & 0x3F));
  };
  if (code_point < 0x80)
    return {static_cast<char>(code_point)};
  if (code_point < 0x800)
    return {static_cast<char>(0xC0 | (code_point >> 6)), tail(0)};
  if (code_point < 0x10000)
    return {static_cast<char>(0xE0 | (code_point >> 12)), tail(6), tail(0)};
  return {static_cast<char>(0xF0 | (code_point >> 18)), tail(12), tail(6), tail(0)};
}

std::string describe_character(std::string_view character) {
  const char32_t code_point = code_point_of(character);
  std::array<char, 16> name{};
  std::snprintf(name.data(), name.size(), "U+%04X", static_cast<unsigned>(code_point));
  const bool is_control = code_point < 0x20 || (code_point >= 0x7F && code_point < 0xA0);
  return is_control ? std::string(name.data())
                    : std::string(name.data()) + " (\"" + std::string(character) + "\")";
}

}  // namespace treadle::tokenizers

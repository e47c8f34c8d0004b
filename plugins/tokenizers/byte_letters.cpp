#include "byte_letters.h"

#include <array>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/utf8.h>

#include "text_checks.h"

namespace treadle::tokenizers {
namespace {

struct Letters {
  std::array<char32_t, 256> of_byte{};
  std::array<int, 324> byte_of{};  // by code point; -1: none

  Letters() {
    byte_of.fill(-1);
    char32_t other = 256;
    for (int byte = 0; byte < 256; ++byte) {
      const bool is_itself = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) ||
                             (byte >= 0xAE && byte <= 0xFF);
      const char32_t letter = is_itself ? static_cast<char32_t>(byte) : other++;
      of_byte[static_cast<std::size_t>(byte)] = letter;
      byte_of[letter] = byte;
    }
  }
};

const Letters& letters() {
  static const Letters letters;
  return letters;
}

}  // namespace

std::string letters_of(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes)
    text += utf8_of(letters().of_byte[static_cast<unsigned char>(byte)]);
  return text;
}

std::string bytes_of_letters(std::string_view text, const std::string& where) {
  std::string bytes;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t length = utf8_character(rest);
    const char32_t letter = length == 0 ? 0 : code_point_of(rest.substr(0, length));
    const int byte = letter < letters().byte_of.size() ? letters().byte_of[letter] : -1;
    if (byte < 0) {
      throw DataError(
          where + ": the token " + quote_text(text) + " has " +
          (length == 0 ? "a byte that is not UTF-8" : describe_character(rest.substr(0, length))) +
          ", which stands for no byte in GPT-2's alphabet");
    }
    bytes += static_cast<char>(byte);
    rest.remove_prefix(length);
  }
  return bytes;
}

}  // namespace treadle::tokenizers

#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

/// Well-formed UTF-8, as table 3-7 of the Unicode standard has it.
namespace treadle {

/// The length of the character at the beginning of `text`; 0 where there is none.
std::size_t utf8_character(std::string_view text);

/// Where the first byte stands that belongs to no character.
std::optional<std::size_t> first_bad_utf8(std::string_view text);

/// The length of `text` without the beginning of a character whose end is missing. Bytes that
/// belong to no character, whatever may follow, count as whole.
std::size_t whole_characters(std::string_view text);

}  // namespace treadle

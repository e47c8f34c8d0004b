#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace treadle::tokenizers {

/// Throws a DataError that names the first byte which is not UTF-8.
void expect_utf8(std::string_view text);
/// The same, naming the document, counted from 1, and its byte.
void expect_utf8(std::span<const std::string_view> documents);

/// The code point of one whole character.
char32_t code_point_of(std::string_view character);
/// Its bytes.
std::string utf8_of(char32_t code_point);
/// `U+00E9 ("é")`; control characters without the quotes.
std::string describe_character(std::string_view character);

}  // namespace treadle::tokenizers

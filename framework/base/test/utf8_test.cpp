// Expected values: table 3-7 of the Unicode standard, "Well-Formed UTF-8 Byte Sequences".
#include <treadle/base/utf8.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace treadle {
namespace {

std::string bytes(std::initializer_list<int> values) {
  std::string text;
  for (const int value : values)
    text += static_cast<char>(value);
  return text;
}

TEST(Utf8, ACharacterHasOneToFourBytes) {
  EXPECT_EQ(utf8_character("ab"), 1U);
  EXPECT_EQ(utf8_character("\u00E9b"), 2U);
  EXPECT_EQ(utf8_character("\u20ACb"), 3U);
  EXPECT_EQ(utf8_character("\U0001F600b"), 4U);
  EXPECT_EQ(utf8_character(std::string_view("\0", 1)), 1U);
  EXPECT_EQ(utf8_character(""), 0U);
}

// Every first byte with the second bytes that it may have.
TEST(Utf8, TakesTheBytesOfTheTable) {
  for (int first = 0; first < 256; ++first) {
    for (int second = 0; second < 256; ++second) {
      const std::string text = bytes({first, second, 0x80, 0x80});
      std::size_t expected = 0;
      const bool follows = second >= 0x80 && second <= 0xBF;
      if (first <= 0x7F)
        expected = 1;
      else if (first >= 0xC2 && first <= 0xDF && follows)
        expected = 2;
      else if (first == 0xE0   ? second >= 0xA0 && second <= 0xBF
               : first == 0xED ? second >= 0x80 && second <= 0x9F
                               : first >= 0xE1 && first <= 0xEF && follows)
        expected = 3;
      else if (first == 0xF0   ? second >= 0x90 && second <= 0xBF
               : first == 0xF4 ? second >= 0x80 && second <= 0x8F
                               : first >= 0xF1 && first <= 0xF3 && follows)
        expected = 4;
      EXPECT_EQ(utf8_character(text), expected) << first << " " << second;
    }
  }
}

TEST(Utf8, LaterBytesMustFollow) {
  for (const int other : {0x00, 0x41, 0x7F, 0xC0, 0xE2, 0xFF}) {
    EXPECT_EQ(utf8_character(bytes({0xE2, 0x82, other})), 0U) << other;
    EXPECT_EQ(utf8_character(bytes({0xF0, 0x9F, other, 0x80})), 0U) << other;
    EXPECT_EQ(utf8_character(bytes({0xF0, 0x9F, 0x98, other})), 0U) << other;
  }
}

TEST(Utf8, AnUnfinishedCharacterIsNone) {
  const std::string_view euro = "\u20AC";
  const std::string_view smile = "\U0001F600";
  for (std::size_t length = 1; length < 4; ++length) {
    EXPECT_EQ(utf8_character(smile.substr(0, length)), 0U);
    EXPECT_EQ(utf8_character(euro.substr(0, length)), length == 3 ? 3U : 0U);
  }
}

TEST(Utf8, TheFirstBadByteIsFound) {
  EXPECT_EQ(first_bad_utf8(""), std::nullopt);
  EXPECT_EQ(first_bad_utf8("a\u00E9\u20AC\U0001F600"), std::nullopt);
  EXPECT_EQ(first_bad_utf8("\xFF"), 0U);
  EXPECT_EQ(first_bad_utf8("a\u20AC\xC3"), 4U);
  EXPECT_EQ(first_bad_utf8("ab\xED\xA0\x80"), 2U) << "a surrogate";
  EXPECT_EQ(first_bad_utf8("ab\xC0\xAF"), 2U) << "longer than need be";
}

TEST(Utf8, WholeCharactersLackAnUnfinishedEnd) {
  EXPECT_EQ(whole_characters(""), 0U);
  EXPECT_EQ(whole_characters("a\u20AC"), 4U);
  EXPECT_EQ(whole_characters("a\xE2\x82"), 1U);
  EXPECT_EQ(whole_characters("a\xE2"), 1U);
  EXPECT_EQ(whole_characters("\xF0\x9F\x98"), 0U);
  EXPECT_EQ(whole_characters("a\xC3"), 1U);
}

TEST(Utf8, WhatCanNeverBecomeACharacterIsWhole) {
  EXPECT_EQ(whole_characters("a\xFF"), 2U);
  EXPECT_EQ(whole_characters("a\x80"), 2U);
  EXPECT_EQ(whole_characters("a\xC0"), 2U);
  EXPECT_EQ(whole_characters("a\xED\xA0"), 3U);
  EXPECT_EQ(whole_characters("a\xE2\x41"), 3U);
}

}  // namespace
}  // namespace treadle

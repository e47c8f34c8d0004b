#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text_checks.h"

/// The texts of reference.py.
namespace treadle::tokenizers {

class ReferenceNumbers {
 public:
  explicit ReferenceNumbers(std::uint64_t seed) : state_(seed) {}
  std::uint64_t below(std::uint64_t bound) {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return (state_ >> 33) % bound;
  }

 private:
  std::uint64_t state_;
};

inline std::string random_text(ReferenceNumbers& numbers) {
  static const std::vector<std::pair<char32_t, std::uint64_t>> blocks = {
      {0x20, 95},  {0x61, 26},  {0x61, 26},    {0x41, 26},   {0x30, 10},   {0xA1, 95},
      {0x3B1, 25}, {0x410, 64}, {0x4E00, 512}, {0x3041, 86}, {0x1F600, 80}};
  static const std::vector<char32_t> spaces = {0x20, 0x20, 0x20, 0x20,   0x0A,   0x0A,  0x09,
                                               0x0D, 0x85, 0xA0, 0x2003, 0x2028, 0x3000};
  static const std::vector<std::string> pieces = {
      "'s",   "'t",  "'re",  "'ve", "'m",           "'ll",    "'d", "'",    "\u2019",
      " the", "the", " and", "ing", "\u0661\u0662", "\u00BD", "  ", "\n\n", " \n "};
  std::string text;
  for (std::uint64_t left = numbers.below(40); left > 0; --left) {
    const std::uint64_t kind = numbers.below(blocks.size() + 5);
    if (kind < blocks.size()) {
      const auto [first, count] = blocks[kind];
      text += utf8_of(first + static_cast<char32_t>(numbers.below(count)));
    } else if (kind < blocks.size() + 2) {
      text += utf8_of(spaces[numbers.below(spaces.size())]);
    } else {
      text += pieces[numbers.below(pieces.size())];
    }
  }
  return text;
}

/// FNV-1a of 64 bits over numbers of four bytes, the lower ones first.
class Digest {
 public:
  void add(std::uint64_t number) {
    for (int i = 0; i < 4; ++i)
      value_ = (value_ ^ (number >> (8 * i) & 0xFF)) * 0x100000001B3U;
  }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xCBF29CE484222325U;
};

}  // namespace treadle::tokenizers

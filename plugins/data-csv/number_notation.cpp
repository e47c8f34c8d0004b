#include "number_notation.h"

namespace treadle::csv {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::size_t count_digits(std::string_view text) {
  std::size_t count = 0;
  while (count < text.size() && is_digit(text[count]))
    ++count;
  return count;
}

}  // namespace

bool NumberNotation::append_plain(std::string_view text, std::string& plain) const {
  constexpr std::size_t kGroup = 3;
  const std::size_t start = plain.size();
  const auto take = [&](std::size_t count) {
    plain.append(text.substr(0, count));
    text.remove_prefix(count);
  };
  const auto fail = [&] {
    plain.resize(start);
    return false;
  };
  if (!text.empty() && (text.front() == '-' || text.front() == '+'))
    take(1);
  std::size_t digits = count_digits(text);
  std::size_t all = digits;
  take(digits);
  while (!thousands.empty() && all > 0 && text.starts_with(thousands)) {
    text.remove_prefix(thousands.size());
    // The first group has at most three digits, as all others have.
    if (digits > kGroup || count_digits(text) != kGroup)
      return fail();
    take(kGroup);
    all += kGroup;
  }
  if (text.starts_with(decimal)) {
    text.remove_prefix(decimal.size());
    plain += '.';
    digits = count_digits(text);
    all += digits;
    take(digits);
  }
  if (all == 0)
    return fail();
  if (!text.empty() && (text.front() | 0x20) == 'e') {
    take(1);
    if (!text.empty() && (text.front() == '-' || text.front() == '+'))
      take(1);
    digits = count_digits(text);
    if (digits == 0)
      return fail();
    take(digits);
  }
  return text.empty() || fail();
}

void NotationGuess::add(std::string_view text) {
  static const NumberNotation kComma{",", "."};
  static const NumberNotation kPoint{".", ","};
  std::string plain;
  const bool has_comma = text.find(',') != std::string_view::npos;
  const bool has_point = text.find('.') != std::string_view::npos;
  if (has_comma && kComma.append_plain(text, plain)) {
    ++commas_;
    thousands_ += has_point ? 1 : 0;
  } else if (has_point && kPoint.append_plain(text, plain) &&
             (has_comma || !kComma.append_plain(text, plain))) {
    // "1.234" may be either.
    ++others_;
  }
}

NumberNotation NotationGuess::guess() const {
  if (commas_ == 0 || others_ > 0)
    return {};
  return {",", thousands_ > 0 ? "." : ""};
}

}  // namespace treadle::csv

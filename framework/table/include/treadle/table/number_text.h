#pragma once

#include <bit>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <string_view>

/// Decimal numbers in text, fast and correctly rounded.
namespace treadle::table {

namespace detail {

inline constexpr std::uint64_t kIntegerPowers[] = {1,      10,      100,      1000,     10000,
                                                   100000, 1000000, 10000000, 100000000};

static_assert(std::endian::native == std::endian::little,
              "read_digits() takes the low byte for the first");

inline constexpr double kPowersOfTen[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                          1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                          1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/// Reads the digits at `p`, eight bytes at a time: how many of them are digits is counted without a
/// branch, as data varies in length, and three multiplications join them to pairs, fours and eight
/// (after D. Lemire, "Quickly parsing eight digits", 2018).
[[gnu::always_inline]] inline const char* read_digits(const char* p, std::uint64_t& digits) {
  constexpr std::uint64_t kPairs = 0x000000FF000000FF;
  for (;;) {
    std::uint64_t bytes;
    std::memcpy(&bytes, p, sizeof(bytes));
    bytes ^= 0x3030303030303030;  // digits become 0 to 9, everything else more
    const std::uint64_t others = ((bytes + 0x7676767676767676) | bytes) & 0x8080808080808080;
    const int count = std::countr_zero(others) / 8;
    if (count == 0)
      return p;
    bytes <<= 64 - 8 * count;  // zeros in front
    bytes = bytes * 10 + (bytes >> 8);
    const std::uint64_t value =
        ((bytes & kPairs) * 0x000F424000000064 + ((bytes >> 16) & kPairs) * 0x0000271000000001) >>
        32;
    digits = digits * kIntegerPowers[count] + value;
    p += count;
    if (count < 8)
      return p;
  }
}

}  // namespace detail

/// Reads the finite number that [begin, end) is as a whole, "+" allowed. False for anything else,
/// "inf" and "nan" among it. A number too large for a double gives infinity, one too small 0.
bool read_whole_number(std::string_view text, double& value);

/// Bytes that must be readable behind a text given to read_number().
inline constexpr int kReadAhead = 8;

/// Reads the number that starts at `p` and returns the position behind it; null when there is none,
/// or none that this function can do. The byte behind the text must not be part of a number, and
/// kReadAhead more must be readable.
///
/// Up to 19 digits fit into 64 bits; where they fit into 53 and the power of ten is at most 22,
/// both are exact doubles and their product or quotient is rounded once (W. Clinger, "How to read
/// floating point numbers accurately", 1990). The rest goes to std::from_chars.
[[gnu::always_inline]] inline const char* read_number(const char* p, double& value) {
  const char* const begin = p;
  const bool negative = *p == '-';
  p += static_cast<int>(negative) | static_cast<int>(*p == '+');
  const char* const first_digit = p;
  std::uint64_t digits = 0;
  // In front of the point there are few, often equally many: a loop that is predicted.
  while (static_cast<unsigned char>(*p - '0') < 10)
    digits = digits * 10 + static_cast<std::uint64_t>(*p++ - '0');
  std::int64_t digit_count = p - first_digit;
  std::int64_t exponent = 0;
  if (*p == '.') {
    const char* const fraction = ++p;
    p = detail::read_digits(p, digits);
    exponent = fraction - p;
    digit_count -= exponent;
  }
  if (digit_count == 0) [[unlikely]]
    return nullptr;
  if ((*p | 0x20) == 'e') {
    const char* q = p + 1;
    const bool minus = *q == '-';
    q += (minus || *q == '+') ? 1 : 0;
    if (static_cast<unsigned char>(*q - '0') >= 10)
      return nullptr;
    std::int64_t written = 0;
    while (static_cast<unsigned char>(*q - '0') < 10) {
      if (written < 100'000)
        written = written * 10 + (*q - '0');
      ++q;
    }
    exponent += minus ? -written : written;
    p = q;
  }
  if (digit_count <= 19 && digits < (std::uint64_t{1} << 53) && exponent >= -22 && exponent <= 22)
      [[likely]] {
    const double whole = static_cast<double>(digits);
    const double magnitude = exponent < 0 ? whole / detail::kPowersOfTen[-exponent]
                                          : whole * detail::kPowersOfTen[exponent];
    // The sign is anybody's guess, so it is not branched on.
    value = std::bit_cast<double>(std::bit_cast<std::uint64_t>(magnitude) |
                                  (static_cast<std::uint64_t>(negative) << 63));
    return p;
  }
  return read_whole_number(std::string_view(begin, p), value) ? p : nullptr;
}

/// The shortest text that reads back as the same number, with an exponent where Python writes one:
/// 0.0001, 1e-05, 1e+16. Up to 32 bytes at `text`; returns their end.
char* write_number(char* text, double value);

/// Whether the text is an integer, in which case `text` loses a fraction of zeros: "3.0" and "3"
/// are one label.
bool normalize_integer(std::string_view& text);

/// Seconds since 1970-01-01T00:00:00Z of an ISO 8601 date or date and time ("2016-07-01",
/// "2016-07-01 00:15", "2016-07-01T00:15:30.5+02:00"; without a zone: UTC), or false. `finer`: the
/// first nine digits behind those of the microseconds, which a double cannot tell apart. `ahead`:
/// how many seconds the clock is ahead of UTC.
bool read_time(std::string_view text, double& seconds, std::int64_t* finer = nullptr,
               double* ahead = nullptr);

}  // namespace treadle::table

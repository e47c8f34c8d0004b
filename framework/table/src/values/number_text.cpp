#include <treadle/table/number_text.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <system_error>

namespace treadle::table {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// The power of ten of the first digit that is not 0. The text is a number that from_chars has read
// to its end, so only the sign of the result matters: it is far from 0.
std::int64_t magnitude(std::string_view text) {
  std::int64_t position = 0;
  std::int64_t point = -1;
  std::int64_t first = -1;
  std::size_t i = text.front() == '-' ? 1 : 0;
  for (; i < text.size() && (is_digit(text[i]) || text[i] == '.'); ++i) {
    if (text[i] == '.') {
      point = position;
      continue;
    }
    if (first < 0 && text[i] != '0')
      first = position;
    ++position;
  }
  std::int64_t exponent = 0;
  if (i < text.size()) {
    const bool minus = text[i + 1] == '-';
    for (i += (minus || text[i + 1] == '+') ? 2 : 1; i < text.size(); ++i) {
      if (exponent < 1'000'000'000)
        exponent = exponent * 10 + (text[i] - '0');
    }
    exponent = minus ? -exponent : exponent;
  }
  return (point < 0 ? position : point) - first + exponent;
}

// Reads `count` digits at `at` and moves behind them.
bool read_field(std::string_view text, std::size_t& at, std::size_t count, int& value) {
  if (at + count > text.size())
    return false;
  value = 0;
  for (const std::size_t end = at + count; at < end; ++at) {
    if (!is_digit(text[at]))
      return false;
    value = value * 10 + (text[at] - '0');
  }
  return true;
}

bool read_char(std::string_view text, std::size_t& at, char expected) {
  if (at >= text.size() || text[at] != expected)
    return false;
  ++at;
  return true;
}

bool is_leap(int year) {
  return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

int days_in(int year, int month) {
  constexpr std::array kDays = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  return kDays[static_cast<std::size_t>(month - 1)] + (month == 2 && is_leap(year) ? 1 : 0);
}

// Days from 1970-01-01, Gregorian (H. Hinnant, "chrono-compatible low-level date algorithms").
std::int64_t days_from_civil(int year, int month, int day) {
  const int shifted = month <= 2 ? year - 1 : year;
  const int era = (shifted >= 0 ? shifted : shifted - 399) / 400;
  const int year_of_era = shifted - era * 400;
  const int day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  const int day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
  return std::int64_t{era} * 146097 + day_of_era - 719468;
}

// "Z", "+02:00", "+0200", "+02": seconds to take away.
bool read_zone(std::string_view text, std::size_t& at, double& offset) {
  offset = 0;
  if (at == text.size())
    return true;
  if (text[at] == 'Z' || text[at] == 'z') {
    ++at;
    return true;
  }
  if (text[at] != '+' && text[at] != '-')
    return false;
  const double sign = text[at++] == '-' ? -1 : 1;
  int hours = 0;
  int minutes = 0;
  if (!read_field(text, at, 2, hours))
    return false;
  if (at < text.size()) {
    read_char(text, at, ':');
    if (!read_field(text, at, 2, minutes))
      return false;
  }
  offset = sign * (hours * 3600 + minutes * 60);
  return hours <= 23 && minutes <= 59;
}

}  // namespace

bool read_whole_number(std::string_view text, double& value) {
  const bool plus = !text.empty() && text.front() == '+';
  if (plus)
    text.remove_prefix(1);
  // Keeps out "inf" and "nan", which from_chars would take, and a second sign.
  const std::size_t start = !plus && !text.empty() && text.front() == '-' ? 1 : 0;
  if (text.size() <= start || !(is_digit(text[start]) || text[start] == '.'))
    return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size())
    return false;
  if (error == std::errc::result_out_of_range) {
    value = magnitude(text) > 0 ? std::numeric_limits<double>::infinity() : 0.0;
    if (start == 1)
      value = -value;
    return true;
  }
  return error == std::errc();
}

char* write_number(char* text, double value) {
  const double magnitude = std::abs(value);
  const bool is_plain = magnitude == 0 || (magnitude >= 1e-4 && magnitude < 1e16);
  return std::to_chars(text, text + 32, value,
                       is_plain ? std::chars_format::fixed : std::chars_format::scientific)
      .ptr;
}

bool normalize_integer(std::string_view& text) {
  std::size_t i = !text.empty() && text.front() == '-' ? 1 : 0;
  const std::size_t first = i;
  while (i < text.size() && is_digit(text[i]))
    ++i;
  if (i == first)
    return false;
  const std::size_t end = i;
  if (i < text.size()) {
    if (text[i++] != '.')
      return false;
    while (i < text.size() && text[i] == '0')
      ++i;
    if (i < text.size())
      return false;
  }
  text = text.substr(0, end);
  return true;
}

bool read_time(std::string_view text, double& seconds, std::int64_t* finer, double* ahead,
               bool* has_zone) {
  std::size_t at = 0;
  int year = 0;
  int month = 0;
  int day = 0;
  if (!read_field(text, at, 4, year) || !read_char(text, at, '-') ||
      !read_field(text, at, 2, month) || !read_char(text, at, '-') ||
      !read_field(text, at, 2, day) || month < 1 || month > 12 || day < 1 ||
      day > days_in(year, month)) {
    return false;
  }
  const double date = static_cast<double>(days_from_civil(year, month, day)) * 86400;
  if (ahead != nullptr)
    *ahead = 0;
  if (has_zone != nullptr)
    *has_zone = false;
  if (at == text.size()) {
    seconds = date;
    return true;
  }
  if (text[at] != 'T' && text[at] != 't' && text[at] != ' ')
    return false;
  ++at;
  int hour = 0;
  int minute = 0;
  int second = 0;
  double fraction = 0;
  if (!read_field(text, at, 2, hour) || !read_char(text, at, ':') ||
      !read_field(text, at, 2, minute)) {
    return false;
  }
  if (read_char(text, at, ':')) {
    if (!read_field(text, at, 2, second))
      return false;
    if (at < text.size() && (text[at] == '.' || text[at] == ',')) {
      double place = 0.1;
      const std::size_t first = ++at;
      for (; at < text.size() && is_digit(text[at]); ++at, place /= 10)
        fraction += (text[at] - '0') * place;
      if (at == first)
        return false;
      constexpr std::size_t kMicroseconds = 6;
      constexpr std::size_t kKept = 15;
      for (std::size_t i = kMicroseconds; finer != nullptr && i < kKept; ++i)
        *finer = *finer * 10 + (first + i < at ? text[first + i] - '0' : 0);
    }
  }
  if (has_zone != nullptr)
    *has_zone = at < text.size();
  double offset = 0;
  // 60 is a leap second.
  if (hour > 23 || minute > 59 || second > 60 || !read_zone(text, at, offset) || at != text.size())
    return false;
  seconds = date + hour * 3600 + minute * 60 + second + fraction - offset;
  if (ahead != nullptr)
    *ahead = offset;
  return true;
}

}  // namespace treadle::table

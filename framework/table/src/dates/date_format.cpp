#include <treadle/table/date_format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <chrono>
#include <cmath>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/time_text.h>
#include <treadle/table/number_text.h>

namespace treadle::table {
namespace {

constexpr std::array<std::string_view, 12> kMonths{"january",   "february", "march",    "april",
                                                   "may",       "june",     "july",     "august",
                                                   "september", "october",  "november", "december"};
constexpr std::array<std::string_view, 7> kWeekdays{"sunday",   "monday", "tuesday", "wednesday",
                                                    "thursday", "friday", "saturday"};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// Reads up to `most` digits, all of them where `is_fixed`.
bool take_digits(std::string_view text, std::size_t& at, std::size_t most, bool is_fixed,
                 int& value) {
  const std::size_t first = at;
  value = 0;
  while (at < text.size() && at - first < most && is_digit(text[at]))
    value = value * 10 + (text[at++] - '0');
  return is_fixed ? at - first == most : at > first;
}

bool starts_with_word(std::string_view text, std::string_view word) {
  return text.size() >= word.size() && std::equal(word.begin(), word.end(), text.begin(),
                                                  [](char a, char b) { return a == (b | 0x20); });
}

/// Reads a name, whole or its first three letters; which one.
template <std::size_t N>
bool take_name(std::string_view text, std::size_t& at, const std::array<std::string_view, N>& names,
               int& number) {
  for (std::size_t i = 0; i < N; ++i) {
    for (const std::string_view name : {names[i], names[i].substr(0, 3)}) {
      if (starts_with_word(text.substr(at), name)) {
        at += name.size();
        number = static_cast<int>(i);
        return true;
      }
    }
  }
  return false;
}

/// "+02:00", "+0200", "+02" or "Z".
bool take_offset(std::string_view text, std::size_t& at, double& offset) {
  offset = 0;
  if (at < text.size() && (text[at] == 'Z' || text[at] == 'z')) {
    ++at;
    return true;
  }
  if (at == text.size() || (text[at] != '+' && text[at] != '-'))
    return false;
  const double sign = text[at++] == '-' ? -1 : 1;
  int hours = 0;
  int minutes = 0;
  if (!take_digits(text, at, 2, true, hours))
    return false;
  const bool has_colon = at < text.size() && text[at] == ':';
  if (has_colon || (at < text.size() && is_digit(text[at]))) {
    at += has_colon ? 1 : 0;
    if (!take_digits(text, at, 2, true, minutes))
      return false;
  }
  offset = sign * (hours * 3600 + minutes * 60);
  return hours <= 23 && minutes <= 59;
}

}  // namespace

struct DateFormat::Fields {
  int year = 1970;
  int month = 1;
  int day = 1;
  int day_of_year = 0;  // 0: not given
  int weekday = -1;     // likewise
  int hour = 0;
  int half = -1;  // 0: AM, 1: PM
  int minute = 0;
  int second = 0;
  double fraction = 0;
  std::int64_t finer = 0;
  std::optional<double> offset;
  std::optional<std::int64_t> unix_seconds;
};

DateFormat::DateFormat(const std::string& format, std::optional<TimeZone> zone, Ambiguous ambiguous)
    : format_(format), zone_(std::move(zone)), ambiguous_(ambiguous) {
  if (format == "unix") {
    kind_ = Kind::kSeconds;
  } else if (format == "unix_ms") {
    kind_ = Kind::kMilliseconds;
  } else if (format != "iso8601") {
    kind_ = Kind::kPattern;
    add_steps(format);
    check_steps();
  }
}

void DateFormat::add_steps(std::string_view format) {
  static constexpr std::pair<char, Part> kParts[] = {
      {'Y', Part::kYear},      {'y', Part::kShortYear}, {'m', Part::kMonth},
      {'b', Part::kMonthName}, {'B', Part::kMonthName}, {'h', Part::kMonthName},
      {'d', Part::kDay},       {'e', Part::kDay},       {'j', Part::kDayOfYear},
      {'a', Part::kWeekday},   {'A', Part::kWeekday},   {'H', Part::kHour},
      {'I', Part::kHourOf12},  {'p', Part::kHalf},      {'M', Part::kMinute},
      {'S', Part::kSecond},    {'f', Part::kFraction},  {'z', Part::kOffset},
      {'s', Part::kUnix}};
  static constexpr std::pair<char, std::string_view> kShort[] = {
      {'F', "%Y-%m-%d"}, {'T', "%H:%M:%S"}, {'R', "%H:%M"}, {'D', "%m/%d/%y"}};
  bool ends_with_digits = false;
  for (std::size_t i = 0; i < format.size(); ++i) {
    if (format[i] == ' ') {
      ends_with_digits = false;
      if (steps_.empty() || steps_.back().part != Part::kSpaces)
        steps_.push_back({Part::kSpaces});
      continue;
    }
    if (format[i] != '%' || format.substr(i, 2) == "%%") {
      ends_with_digits = false;
      i += format[i] == '%' ? 1 : 0;
      steps_.push_back({Part::kLiteral, format[i]});
      continue;
    }
    const char letter = ++i < format.size() ? format[i] : '\0';
    const auto* const shorthand = std::find_if(std::begin(kShort), std::end(kShort),
                                               [&](const auto& s) { return s.first == letter; });
    if (shorthand != std::end(kShort)) {
      add_steps(shorthand->second);
      ends_with_digits = true;
      continue;
    }
    const auto* const part = std::find_if(std::begin(kParts), std::end(kParts),
                                          [&](const auto& p) { return p.first == letter; });
    if (part == std::end(kParts)) {
      throw UsageError(quote_text(format) + " has " +
                       quote_text(letter > ' ' ? std::string{'%', letter} : std::string("%")) +
                       ", which is none of %Y %y %m %b %B %d %j %a %A %H %I %p %M %S %f %z %s %F "
                       "%T %R %D %%");
    }
    const bool is_name = part->second == Part::kMonthName || part->second == Part::kWeekday ||
                         part->second == Part::kHalf || part->second == Part::kOffset;
    const bool is_digits = !is_name && part->second != Part::kFraction;
    const bool follows_digits = is_digits && ends_with_digits;
    if (follows_digits)
      steps_.back().is_fixed = true;
    steps_.push_back({part->second, '\0', follows_digits});
    ends_with_digits = is_digits;
  }
}

bool DateFormat::has(Part part) const {
  return std::any_of(steps_.begin(), steps_.end(),
                     [&](const Step& step) { return step.part == part; });
}

void DateFormat::check_steps() const {
  const auto fail = [&](const std::string& what) {
    throw UsageError(quote_text(format_) + " " + what);
  };
  if (has(Part::kUnix))
    return;
  const bool has_month = has(Part::kMonth) || has(Part::kMonthName);
  if (!has(Part::kYear) && !has(Part::kShortYear))
    fail("gives no year; add %Y or %y");
  if (has(Part::kDay) && !has_month)
    fail("gives a day, but no month; add %m or %b, or take %j, the day of the year");
  if (has(Part::kDayOfYear) && has_month)
    fail("gives the month and the day of the year; take %d instead of %j");
  if (has(Part::kHourOf12) != has(Part::kHalf))
    fail("needs both %I, the hour of 12, and %p, AM or PM; %H is the hour of 24");
  const bool has_hour = has(Part::kHour) || has(Part::kHourOf12);
  if ((has(Part::kMinute) && !has_hour) || (has(Part::kSecond) && !has(Part::kMinute)) ||
      (has(Part::kFraction) && !has(Part::kSecond))) {
    fail("gives a part of the time without the larger ones: hour, minute, second, fraction");
  }
}

bool DateFormat::take(const Step& step, std::string_view text, std::size_t& at,
                      Fields& fields) const {
  int number = 0;
  const auto digits = [&](std::size_t most, int& value) {
    return take_digits(text, at, most, step.is_fixed, value);
  };
  switch (step.part) {
    case Part::kLiteral:
      return at < text.size() && text[at++] == step.literal;
    case Part::kSpaces: {
      const std::size_t first = at;
      while (at < text.size() && text[at] == ' ')
        ++at;
      return at > first;
    }
    case Part::kYear:
      return take_digits(text, at, 4, true, fields.year);
    case Part::kShortYear:
      if (!take_digits(text, at, 2, true, number))
        return false;
      fields.year = number + (number < 69 ? 2000 : 1900);
      return true;
    case Part::kMonth:
      return digits(2, fields.month);
    case Part::kMonthName:
      if (!take_name(text, at, kMonths, number))
        return false;
      fields.month = number + 1;
      return true;
    case Part::kDay:
      return digits(2, fields.day);
    case Part::kDayOfYear:
      return digits(3, fields.day_of_year) && fields.day_of_year > 0;
    case Part::kWeekday:
      return take_name(text, at, kWeekdays, fields.weekday);
    case Part::kHour:
      return digits(2, fields.hour);
    case Part::kHourOf12:
      return digits(2, fields.hour) && fields.hour >= 1 && fields.hour <= 12;
    case Part::kHalf:
      fields.half = starts_with_word(text.substr(at), "am") ? 0 : 1;
      if (fields.half == 1 && !starts_with_word(text.substr(at), "pm"))
        return false;
      at += 2;
      return true;
    case Part::kMinute:
      return digits(2, fields.minute);
    case Part::kSecond:
      return digits(2, fields.second);
    case Part::kFraction: {
      const std::size_t first = at;
      double place = 0.1;
      for (; at < text.size() && at - first < 9 && is_digit(text[at]); ++at, place /= 10)
        fields.fraction += (text[at] - '0') * place;
      for (std::size_t i = 6; i < 15; ++i)
        fields.finer = fields.finer * 10 + (first + i < at ? text[first + i] - '0' : 0);
      return at > first;
    }
    case Part::kOffset:
      return take_offset(text, at, fields.offset.emplace());
    case Part::kUnix: {
      std::int64_t seconds = 0;
      const auto [end, error] =
          std::from_chars(text.data() + at, text.data() + text.size(), seconds);
      at = static_cast<std::size_t>(end - text.data());
      fields.unix_seconds = seconds;
      return error == std::errc();
    }
  }
  return false;
}

bool DateFormat::read_pattern(std::string_view text, Time& time, std::string* problem) const {
  Fields fields;
  std::size_t at = 0;
  for (const Step& step : steps_) {
    if (!take(step, text, at, fields))
      return false;
  }
  return at == text.size() && finish(fields, time, problem);
}

bool DateFormat::finish(const Fields& fields, Time& time, std::string* problem) const {
  using namespace std::chrono;
  constexpr int kLeapSecond = 60;
  time.finer = fields.finer;
  if (fields.unix_seconds) {
    time.seconds = static_cast<double>(*fields.unix_seconds) + fields.fraction;
    time.ahead = zone_ ? static_cast<double>(zone_->offset_at(*fields.unix_seconds)) : 0;
    return true;
  }
  if (fields.hour > 23 || fields.minute > 59 || fields.second > kLeapSecond)
    return false;
  const year_month_day date{year(fields.year), month(static_cast<unsigned>(fields.month)),
                            day(static_cast<unsigned>(fields.day))};
  if (!date.ok())
    return false;
  sys_days days_since = date;
  if (fields.day_of_year > 0) {
    if (fields.day_of_year > (date.year().is_leap() ? 366 : 365))
      return false;
    days_since = sys_days(date.year() / January / 1) + days(fields.day_of_year - 1);
  }
  if (fields.weekday >= 0 &&
      weekday(days_since) != weekday(static_cast<unsigned>(fields.weekday))) {
    return false;
  }
  const int hour = fields.half < 0 ? fields.hour : fields.hour % 12 + 12 * fields.half;
  const double local = static_cast<double>(days_since.time_since_epoch().count()) * 86400 +
                       hour * 3600 + fields.minute * 60 + fields.second + fields.fraction;
  if (fields.offset) {
    time.ahead = *fields.offset;
    time.seconds = local - time.ahead;
    return true;
  }
  return set_zone(local, time, problem);
}

bool DateFormat::set_zone(double local, Time& time, std::string* problem) const {
  time.seconds = local;
  time.ahead = 0;
  if (!zone_)
    return true;
  const TimeZone::Offsets offsets = zone_->offsets_of(static_cast<std::int64_t>(std::floor(local)));
  if (offsets.count == 0 || (offsets.count > 1 && ambiguous_ == Ambiguous::kError)) {
    if (problem != nullptr) {
      *problem = time_text(local, true) +
                 (offsets.count == 0
                      ? " does not exist in " + zone_->name() + ": clocks were set forward over it"
                      : " exists twice in " + zone_->name() +
                            ", where clocks were set back; set \"ambiguous\" to \"earliest\" or "
                            "\"latest\"");
    }
    return false;
  }
  const bool is_second = offsets.count > 1 && ambiguous_ == Ambiguous::kLatest;
  time.ahead = static_cast<double>(offsets.seconds[is_second ? 1 : 0]);
  time.seconds = local - time.ahead;
  return true;
}

bool DateFormat::read_number(std::string_view text, Time& time) const {
  constexpr double kFurthest = 1e13;  // seconds; a time beyond is no time
  if (!read_whole_number(text, time.seconds))
    return false;
  if (kind_ == Kind::kMilliseconds)
    time.seconds /= 1000;
  if (!(std::abs(time.seconds) <= kFurthest))
    return false;
  time.finer = 0;
  time.ahead = zone_ ? static_cast<double>(
                           zone_->offset_at(static_cast<std::int64_t>(std::floor(time.seconds))))
                     : 0;
  return true;
}

bool DateFormat::read(std::string_view text, Time& time, std::string* problem) const {
  switch (kind_) {
    case Kind::kIso: {
      time.finer = 0;
      bool has_zone = false;
      if (!read_time(text, time.seconds, &time.finer, &time.ahead, &has_zone))
        return false;
      return has_zone || set_zone(time.seconds, time, problem);
    }
    case Kind::kSeconds:
    case Kind::kMilliseconds:
      return read_number(text, time);
    case Kind::kPattern:
      break;
  }
  return read_pattern(text, time, problem);
}

std::string DateFormat::expected() const {
  switch (kind_) {
    case Kind::kIso:
      return "an ISO 8601 date or date and time";
    case Kind::kSeconds:
      return "a number of seconds since 1970";
    case Kind::kMilliseconds:
      return "a number of milliseconds since 1970";
    case Kind::kPattern:
      break;
  }
  return "a date as " + quote_text(format_);
}

std::span<const char* const> common_date_formats() {
  static constexpr std::array kFormats{"%d.%m.%Y",
                                       "%d.%m.%Y %H:%M",
                                       "%d.%m.%Y %H:%M:%S",
                                       "%m/%d/%Y",
                                       "%m/%d/%Y %H:%M",
                                       "%m/%d/%Y %H:%M:%S",
                                       "%m/%d/%Y %I:%M %p",
                                       "%d/%m/%Y",
                                       "%d/%m/%Y %H:%M",
                                       "%d/%m/%Y %H:%M:%S",
                                       "%Y/%m/%d",
                                       "%Y/%m/%d %H:%M",
                                       "%Y/%m/%d %H:%M:%S",
                                       "%Y%m%d",
                                       "%d-%m-%Y",
                                       "%d %b %Y",
                                       "%d-%b-%Y",
                                       "%b %d, %Y",
                                       "%d/%b/%Y:%H:%M:%S %z"};
  return kFormats;
}

std::string likely_date_format(std::string_view text) {
  for (const char* format : common_date_formats()) {
    DateFormat::Time time;
    if (DateFormat(format).read(text, time))
      return format;
  }
  return "";
}

}  // namespace treadle::table

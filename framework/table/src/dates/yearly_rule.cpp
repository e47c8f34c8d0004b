#include <cctype>
#include <chrono>

#include <treadle/table/time_zone.h>

namespace treadle::table {
namespace {

using Change = YearlyRule::Change;

constexpr std::int64_t kSecondsOfADay = 86400;

/// Reads a POSIX TZ string from its start to its end.
class RuleText {
 public:
  explicit RuleText(std::string_view text) : text_(text) {}

  bool is_at_end() const { return text_.empty(); }
  bool next_is(char c) const { return !text_.empty() && text_.front() == c; }
  bool take(char c) {
    if (!next_is(c))
      return false;
    text_.remove_prefix(1);
    return true;
  }

  /// "CET" or "<+03>": three characters or more.
  bool take_name() {
    const bool is_quoted = take('<');
    std::size_t size = 0;
    while (size < text_.size() && is_of_name(text_[size], is_quoted))
      ++size;
    text_.remove_prefix(size);
    return size >= 3 && (!is_quoted || take('>'));
  }

  bool take_number(int most, int& value) {
    std::size_t size = 0;
    value = 0;
    while (size < text_.size() && std::isdigit(static_cast<unsigned char>(text_[size])) != 0) {
      value = value * 10 + (text_[size++] - '0');
      if (value > most)
        return false;
    }
    text_.remove_prefix(size);
    return size > 0;
  }

  /// "[+-]hh[:mm[:ss]]".
  bool take_time(int most_hours, std::int64_t& seconds) {
    const bool is_negative = next_is('-');
    if (next_is('-') || next_is('+'))
      text_.remove_prefix(1);
    int part = 0;
    if (!take_number(most_hours, part))
      return false;
    seconds = std::int64_t{part} * 3600;
    for (const int unit : {60, 1}) {
      if (!take(':'))
        break;
      if (!take_number(59, part))
        return false;
      seconds += std::int64_t{part} * unit;
    }
    seconds = is_negative ? -seconds : seconds;
    return true;
  }

  bool take_change(Change& change) {
    if (take('M')) {
      change.day = Change::Day::kWeekday;
      if (!take_number(12, change.month) || change.month < 1 || !take('.') ||
          !take_number(5, change.week) || change.week < 1 || !take('.') ||
          !take_number(6, change.weekday)) {
        return false;
      }
    } else if (take('J')) {
      change.day = Change::Day::kDayWithoutLeap;
      if (!take_number(365, change.number) || change.number < 1)
        return false;
    } else if (!take_number(365, change.number)) {
      return false;
    }
    return !take('/') || take_time(167, change.seconds);
  }

 private:
  static bool is_of_name(char c, bool is_quoted) {
    const auto byte = static_cast<unsigned char>(c);
    return std::isalpha(byte) != 0 ||
           (is_quoted && (std::isdigit(byte) != 0 || c == '+' || c == '-'));
  }

  std::string_view text_;
};

/// When the change of a year comes, in seconds of the clock that is set then.
std::int64_t local_time_of(const Change& change, int year) {
  using namespace std::chrono;
  const sys_days first = sys_days(std::chrono::year(year) / January / 1);
  sys_days day = first;
  switch (change.day) {
    case Change::Day::kWeekday: {
      const auto month = std::chrono::year(year) / std::chrono::month(unsigned(change.month));
      const weekday wanted{static_cast<unsigned>(change.weekday)};
      day = change.week == 5 ? sys_days(month / wanted[last])
                             : sys_days(month / wanted[static_cast<unsigned>(change.week)]);
      break;
    }
    case Change::Day::kDayWithoutLeap: {
      constexpr int kDaysToMarch = 59;
      const bool is_behind = std::chrono::year(year).is_leap() && change.number > kDaysToMarch;
      day = first + days(change.number - 1 + (is_behind ? 1 : 0));
      break;
    }
    case Change::Day::kDayOfYear:
      day = first + days(change.number);
      break;
  }
  return day.time_since_epoch().count() * kSecondsOfADay + change.seconds;
}

}  // namespace

std::optional<YearlyRule> read_yearly_rule(std::string_view text) {
  constexpr int kMostHours = 24;
  RuleText rest(text);
  YearlyRule rule;
  std::int64_t behind = 0;  // of UTC: POSIX counts to the west
  if (!rest.take_name() || !rest.take_time(kMostHours, behind))
    return std::nullopt;
  rule.standard = -behind;
  if (rest.is_at_end())
    return rule;
  if (!rest.take_name())
    return std::nullopt;
  rule.summer = rule.standard + 3600;
  if (!rest.next_is(',')) {
    if (!rest.take_time(kMostHours, behind))
      return std::nullopt;
    rule.summer = -behind;
  }
  if (!rest.take(',') || !rest.take_change(rule.begin) || !rest.take(',') ||
      !rest.take_change(rule.end) || !rest.is_at_end()) {
    return std::nullopt;
  }
  return rule;
}

std::int64_t YearlyRule::offset_at(std::int64_t utc) const {
  using namespace std::chrono;
  constexpr std::int64_t kFurthest = 900'000'000'000;  // 28 000 years, which chrono has
  if (!summer || utc > kFurthest || utc < -kFurthest)
    return standard;
  const auto date = floor<days>(sys_seconds(seconds(utc + standard)));
  const int year = static_cast<int>(year_month_day(date).year());
  const std::int64_t to_summer = local_time_of(begin, year) - standard;
  const std::int64_t to_winter = local_time_of(end, year) - *summer;
  const bool is_summer = to_summer < to_winter ? utc >= to_summer && utc < to_winter
                                               : utc >= to_summer || utc < to_winter;
  return is_summer ? *summer : standard;
}

}  // namespace treadle::table

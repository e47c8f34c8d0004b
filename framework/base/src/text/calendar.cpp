#include <treadle/base/calendar.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace treadle {
namespace {

namespace chrono = std::chrono;

constexpr double kSecondsOfHour = 3600;
constexpr double kSecondsOfDay = 86400;

chrono::sys_days day_of(double time) {
  return chrono::sys_days(
      chrono::days(static_cast<std::int64_t>(std::floor(time / kSecondsOfDay))));
}

double within(double time, double cycle) {
  return time / cycle - std::floor(time / cycle);
}

/// Monday is 0.
double weekday(double time) {
  return chrono::weekday(day_of(time)).iso_encoding() - 1.0;
}

double day_of_month(double time) {
  const chrono::sys_days day = day_of(time);
  const chrono::year_month_day date(day);
  const chrono::year_month_day_last last(date.year(), chrono::month_day_last(date.month()));
  return (static_cast<unsigned>(date.day()) - 1.0) / static_cast<unsigned>(last.day());
}

double day_of_year(double time) {
  const chrono::sys_days day = day_of(time);
  const chrono::year year = chrono::year_month_day(day).year();
  const chrono::sys_days first(year / chrono::January / 1);
  return static_cast<double>((day - first).count()) / (year.is_leap() ? 366 : 365);
}

double month(double time) {
  return (static_cast<unsigned>(chrono::year_month_day(day_of(time)).month()) - 1.0) / 12;
}

constexpr std::array kCalendar = {
    CalendarFeature{"minute", [](double time) { return within(time, kSecondsOfHour); }},
    CalendarFeature{"hour", [](double time) { return within(time, kSecondsOfDay); }},
    CalendarFeature{"day_of_week", [](double time) { return weekday(time) / 7; }},
    CalendarFeature{"day_of_month", &day_of_month},
    CalendarFeature{"day_of_year", &day_of_year},
    CalendarFeature{"month", &month},
    CalendarFeature{"weekend", [](double time) { return weekday(time) >= 5 ? 1.0 : 0.0; }, false}};

}  // namespace

std::vector<std::string> CalendarFeature::column_names() const {
  const std::string text(name);
  if (!is_cyclic)
    return {text};
  return {text + "_sin", text + "_cos"};
}

void CalendarFeature::write(double time, double* numbers) const {
  const double at = place(time);
  if (!is_cyclic) {
    *numbers = at;
    return;
  }
  numbers[0] = std::sin(2 * std::numbers::pi * at);
  numbers[1] = std::cos(2 * std::numbers::pi * at);
}

const CalendarFeature* find_calendar_feature(std::string_view name) {
  const auto* const found =
      std::find_if(kCalendar.begin(), kCalendar.end(),
                   [&](const CalendarFeature& feature) { return feature.name == name; });
  return found == kCalendar.end() ? nullptr : found;
}

}  // namespace treadle

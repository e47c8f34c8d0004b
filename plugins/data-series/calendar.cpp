#include "calendar.h"

#include <array>
#include <chrono>
#include <cmath>
#include <numbers>

#include <ATen/ops/empty.h>

#include <treadle/base/error.h>

#include "time_grid.h"

namespace treadle::series {
namespace {

namespace chrono = std::chrono;

chrono::sys_days day_of(double time) {
  return chrono::sys_days(chrono::days(static_cast<std::int64_t>(std::floor(time / kDay))));
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

const std::array kFeatures = {
    CalendarFeature{"minute", [](double time) { return within(time, 3600); }},
    CalendarFeature{"hour", [](double time) { return within(time, kDay); }},
    CalendarFeature{"day_of_week", [](double time) { return weekday(time) / 7; }},
    CalendarFeature{"day_of_month", &day_of_month},
    CalendarFeature{"day_of_year", &day_of_year},
    CalendarFeature{"month", &month},
    CalendarFeature{"weekend", [](double time) { return weekday(time) >= 5 ? 1.0 : 0.0; }, false}};

}  // namespace

const CalendarFeature& calendar_feature(const std::string& name) {
  for (const CalendarFeature& feature : kFeatures) {
    if (feature.name == name)
      return feature;
  }
  throw ContractViolation("a feature of the calendar that the schema does not have: " + name);
}

std::vector<std::string> column_names(const CalendarFeature& feature) {
  if (!feature.is_cyclic)
    return {feature.name};
  return {feature.name + "_sin", feature.name + "_cos"};
}

at::Tensor values_at(const CalendarFeature& feature, const at::Tensor& times) {
  const std::int64_t width = feature.is_cyclic ? 2 : 1;
  at::Tensor values = at::empty({times.size(0), width}, at::kDouble);
  const auto* const time = times.data_ptr<double>();
  auto* out = values.data_ptr<double>();
  for (std::int64_t row = 0; row < times.size(0); ++row) {
    const double place = feature.place(time[row]);
    if (!feature.is_cyclic) {
      *out++ = place;
      continue;
    }
    *out++ = std::sin(2 * std::numbers::pi * place);
    *out++ = std::cos(2 * std::numbers::pi * place);
  }
  return values;
}

}  // namespace treadle::series

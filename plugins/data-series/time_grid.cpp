#include "time_grid.h"

#include <chrono>
#include <cmath>
#include <map>
#include <stdexcept>

namespace treadle::series {
namespace {

// 1970-01-01 was a Thursday, so the first Monday was the 5th.
constexpr double kFirstMonday = 4 * kDay;

std::int64_t floor_divided(std::int64_t number, std::int64_t by) {
  return number >= 0 ? number / by : -((by - 1 - number) / by);
}

}  // namespace

TimeGrid::TimeGrid(const std::string& frequency) : is_of_dates_(true) {
  static const std::map<std::string, double> kUnits = {
      {"s", 1}, {"min", 60}, {"h", 3600}, {"d", kDay}, {"w", 7 * kDay}};
  std::size_t digits = 0;
  const std::int64_t count = std::stoll(frequency, &digits);
  const std::string unit = frequency.substr(digits);
  if (unit == "mo") {
    months_ = count;
    return;
  }
  seconds_ = static_cast<double>(count) * kUnits.at(unit);
  origin_ = unit == "w" ? kFirstMonday : 0;
}

std::int64_t TimeGrid::step_of(double time) const {
  namespace chrono = std::chrono;
  if (months_ == 0)
    return static_cast<std::int64_t>(std::floor((time - origin_) / seconds_));
  const chrono::year_month_day date(
      chrono::sys_days(chrono::days(static_cast<std::int64_t>(std::floor(time / kDay)))));
  const std::int64_t month =
      static_cast<int>(date.year()) * std::int64_t{12} + static_cast<unsigned>(date.month()) - 1;
  return floor_divided(month, months_);
}

double TimeGrid::time_of(std::int64_t step) const {
  namespace chrono = std::chrono;
  if (months_ == 0)
    return origin_ + static_cast<double>(step) * seconds_;
  const std::int64_t month = step * months_;
  const std::int64_t year = floor_divided(month, 12);
  const chrono::sys_days day(chrono::year(static_cast<int>(year)) /
                             chrono::month(static_cast<unsigned>(month - 12 * year) + 1) /
                             chrono::day(1));
  return static_cast<double>(day.time_since_epoch().count()) * kDay;
}

}  // namespace treadle::series

#include "load/series_times.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

#include <treadle/base/time_text.h>

namespace treadle::internal {
namespace {

namespace chrono = std::chrono;

/// So many of the last rows say how a series goes on.
constexpr std::int64_t kRowsLookedAt = 100;

/// A date as the number of its month, its day, and the seconds of that day.
struct MonthDay {
  std::int64_t month = 0;  // since the year 0
  unsigned day = 1;
  bool is_last = false;
  double seconds = 0;
};

std::optional<MonthDay> month_day_of(double time) {
  constexpr double kSecondsADay = 86400;
  constexpr double kMostDays = 3e6;  // some 8000 years
  const double days = std::floor(time / kSecondsADay);
  if (!(std::abs(days) < kMostDays))
    return std::nullopt;
  const chrono::year_month_day date(
      chrono::sys_days(chrono::days(static_cast<std::int64_t>(days))));
  const chrono::year_month_day next(
      chrono::sys_days(chrono::days(static_cast<std::int64_t>(days) + 1)));
  return MonthDay{
      static_cast<int>(date.year()) * std::int64_t{12} + static_cast<unsigned>(date.month()) - 1,
      static_cast<unsigned>(date.day()), next.month() != date.month(), time - days * kSecondsADay};
}

double time_of(const MonthDay& at, std::int64_t months, bool last_day) {
  const std::int64_t month = at.month + months;
  const auto year_months = chrono::year(static_cast<int>(month / 12)) /
                           chrono::month(static_cast<unsigned>(month % 12) + 1);
  const chrono::sys_days last(year_months / chrono::last);
  const chrono::sys_days day = last_day
                                   ? last
                                   : std::min(last, chrono::sys_days(year_months / chrono::day(1)) +
                                                        chrono::days(at.day - 1));
  return static_cast<double>(day.time_since_epoch().count()) * 86400 + at.seconds;
}

}  // namespace

SeriesTimes::SeriesTimes(const RowReader& rows)
    : series_(treadle::series_of(rows)), are_dates_(rows.spec().has_dates) {
  if (const at::Tensor times = rows.timestamps(); times.defined())
    times_ = times.contiguous();
}

const RowRange& SeriesTimes::series_of_row(std::int64_t row) const {
  return *std::prev(std::upper_bound(
      series_.begin(), series_.end(), row,
      [](std::int64_t place, const RowRange& series) { return place < series.begin; }));
}

SeriesTimes::Step SeriesTimes::step_of(const RowRange& series) const {
  const double* const time = times_.data_ptr<double>();
  const std::int64_t begin = std::max(series.begin, series.end - kRowsLookedAt);
  if (series.end - begin < 2)
    return {};
  std::vector<double> distances;
  for (std::int64_t row = begin + 1; row < series.end; ++row)
    distances.push_back(time[row] - time[row - 1]);
  const auto middle = distances.begin() + static_cast<std::ptrdiff_t>(distances.size() / 2);
  std::nth_element(distances.begin(), middle, distances.end());
  Step step{*middle};
  if (!are_dates_)
    return step;
  bool same_day = true;
  bool last_day = true;
  std::int64_t months = 0;
  std::optional<MonthDay> before;
  for (std::int64_t row = begin; row < series.end; ++row) {
    const std::optional<MonthDay> now = month_day_of(time[row]);
    if (!now)
      return step;
    last_day = last_day && now->is_last;
    if (before) {
      const std::int64_t distance = now->month - before->month;
      if (months == 0)
        months = distance;
      if (distance <= 0 || distance != months || now->seconds != before->seconds)
        return step;
      same_day = same_day && now->day == before->day;
    }
    before = now;
  }
  if (same_day || last_day) {
    step.months = months;
    step.is_last_day = last_day && !same_day;
  }
  return step;
}

std::string SeriesTimes::text(std::int64_t of, std::int64_t row) const {
  if (!has_times())
    return {};
  const RowRange& series = series_of_row(of);
  const double* const time = times_.data_ptr<double>();
  if (row < series.end)
    return time_text(time[row], are_dates_);
  const double last = time[series.end - 1];
  const std::int64_t further = row - series.end + 1;
  const Step step = step_of(series);
  const double at = step.months == 0
                        ? last + step.seconds * static_cast<double>(further)
                        : time_of(*month_day_of(last), step.months * further, step.is_last_day);
  return time_text(at, are_dates_);
}

}  // namespace treadle::internal

#include "data/series_times.h"

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

constexpr double kSecondsADay = 86400;
constexpr double kSlack = 0.5;      // of a step: what is later is behind a hole
constexpr double kMostHoles = 0.1;  // of the rows
constexpr std::size_t kDaysAWeek = 7;

/// From that of 1970-01-01 on, 0 to 6.
std::size_t day_of_week(double time) {
  const double day = std::floor(time / kSecondsADay);
  return static_cast<std::size_t>(day - std::floor(day / kDaysAWeek) * kDaysAWeek);
}

/// A date as the number of its month, its day, and the seconds of that day.
struct MonthDay {
  std::int64_t month = 0;  // since the year 0
  unsigned day = 1;
  bool is_last = false;
  double seconds = 0;
};

std::optional<MonthDay> month_day_of(double time) {
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
  if (!are_dates_ || goes_on_by_months({begin, series.end}, step))
    return step;
  find_days_left_out({begin, series.end}, step);
  return step;
}

/// Sets the step where all rows are on one day of their months, or each on its month's last, at one
/// time of the day.
bool SeriesTimes::goes_on_by_months(const RowRange& rows, Step& step) const {
  const double* const time = times_.data_ptr<double>();
  bool same_day = true;
  bool last_day = true;
  std::vector<std::int64_t> distances;
  std::optional<MonthDay> before;
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    const std::optional<MonthDay> now = month_day_of(time[row]);
    if (!now || (before && (now->month <= before->month || now->seconds != before->seconds)))
      return false;
    last_day = last_day && now->is_last;
    same_day = same_day && (!before || now->day == before->day);
    if (before)
      distances.push_back(now->month - before->month);
    before = now;
  }
  if (!same_day && !last_day)
    return false;
  // A hole is a whole number of steps.
  step.months = *std::min_element(distances.begin(), distances.end());
  const bool is_regular =
      std::all_of(distances.begin(), distances.end(),
                  [&](std::int64_t distance) { return distance % step.months == 0; });
  if (!is_regular)
    step.months = 0;
  step.is_last_day = last_day && !same_day;
  return is_regular;
}

/// Days of the week that were passed over twice or more, and never had a row.
void SeriesTimes::find_days_left_out(const RowRange& rows, Step& step) const {
  if (step.seconds != kSecondsADay)
    return;
  const double* const time = times_.data_ptr<double>();
  std::array<std::int64_t, kDaysAWeek> passed{};
  std::array<bool, kDaysAWeek> has_row{};
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    has_row.at(day_of_week(time[row])) = true;
    constexpr double kMostDays = 14;  // more is no hole that says anything
    const double days = row == rows.begin ? 0 : (time[row] - time[row - 1]) / kSecondsADay;
    if (days != std::floor(days) || days > kMostDays)
      return;
    for (double day = 1; day < days; ++day)
      ++passed.at(day_of_week(time[row - 1] + day * kSecondsADay));
  }
  for (std::size_t day = 0; day < step.left_out.size(); ++day)
    step.left_out.at(day) = passed.at(day) > 1 && !has_row.at(day);
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
  return time_text(time_behind(last, step_of(series), further), are_dates_);
}

double SeriesTimes::time_behind(double time, const Step& step, std::int64_t steps) {
  if (step.months != 0)
    return time_of(*month_day_of(time), step.months * steps, step.is_last_day);
  if (step.left_out == std::array<bool, kDaysAWeek>{})
    return time + step.seconds * static_cast<double>(steps);
  for (std::int64_t i = 0; i < steps; ++i) {
    do {
      time += kSecondsADay;
    } while (step.left_out.at(day_of_week(time)));
  }
  return time;
}

std::vector<std::int64_t> SeriesTimes::rows_behind_holes() const {
  std::vector<std::int64_t> rows;
  if (!has_times())
    return rows;
  const double* const time = times_.data_ptr<double>();
  for (const RowRange& series : series_) {
    const Step step = step_of(series);
    std::vector<std::int64_t> behind;
    for (std::int64_t row = series.begin + 1; row < series.end; ++row) {
      const double expected = time_behind(time[row - 1], step, 1);
      if (time[row] > expected + kSlack * step.seconds)
        behind.push_back(row);
    }
    // Of more the times are not regular.
    if (static_cast<double>(behind.size()) <= kMostHoles * static_cast<double>(series.size()))
      rows.insert(rows.end(), behind.begin(), behind.end());
  }
  return rows;
}

}  // namespace treadle::internal

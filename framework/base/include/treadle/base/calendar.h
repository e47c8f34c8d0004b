#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace treadle {

/// A feature of the calendar: a date as a model can use it. Cyclic ones are two numbers, the sine
/// and the cosine of their place in the cycle times 2 pi, so that 23 and 0 o'clock are neighbours.
/// Times are seconds since 1970-01-01T00:00:00Z.
struct CalendarFeature {
  std::string_view name;
  /// The place in the cycle, in [0, 1); of a feature that is not cyclic, the number itself.
  double (*place)(double time);
  bool is_cyclic = true;

  std::size_t width() const { return is_cyclic ? 2 : 1; }
  /// "hour_sin", "hour_cos"; "weekend".
  std::vector<std::string> column_names() const;
  /// Its width() numbers for a time.
  void write(double time, double* numbers) const;
};

/// "minute", "hour", "day_of_week", "day_of_month", "day_of_year", "month" or "weekend"; null for
/// any other name.
const CalendarFeature* find_calendar_feature(std::string_view name);

}  // namespace treadle

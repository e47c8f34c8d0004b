#pragma once

#include <cstdint>
#include <string>

namespace treadle::series {

inline constexpr double kDay = 86400;  ///< seconds

/// Regular times: steps of so many seconds (or units, where times are numbers), or of months.
///
/// Dates are seconds since 1970-01-01T00:00:00Z. Steps of seconds are counted from there, so that
/// hours begin with full hours and days with midnight; weeks begin on Mondays, and several months
/// with those of January of the year 0.
class TimeGrid {
 public:
  /// "15min", "1h", "1d", "1w", "1mo", as the schema allows them: for dates.
  explicit TimeGrid(const std::string& frequency);
  explicit TimeGrid(double distance) : seconds_(distance) {}

  bool is_of_dates() const { return is_of_dates_; }
  /// Whether its steps are days of a clock, or more of them, rather than a distance of time.
  bool is_of_days() const { return is_of_dates_ && (months_ != 0 || seconds_ >= kDay); }
  /// The number of the step that a time lies in.
  std::int64_t step_of(double time) const;
  /// The time that a step begins with.
  double time_of(std::int64_t step) const;

 private:
  bool is_of_dates_ = false;
  double seconds_ = 0;
  double origin_ = 0;
  std::int64_t months_ = 0;  // instead of seconds, where not 0
};

}  // namespace treadle::series

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <treadle/base/number.h>
namespace treadle {

/// The values of one number by epoch, with slope, variance and conditions on them.
///
/// A `window` counts the newest values; 0 or less means all of them. With fewer than two values, or
/// with values that are not finite, functions return 0 and false.
class Trend {
 public:
  Trend() = default;
  /// `direction` decides what improving() means; kNone counts as lower is better.
  explicit Trend(std::vector<double> values, Direction direction = Direction::kLowerIsBetter);

  const std::vector<double>& values() const { return values_; }
  std::size_t size() const { return values_.size(); }
  bool empty() const { return values_.empty(); }
  Direction direction() const { return direction_; }
  /// The newest `count` values, fewer where there are fewer.
  std::span<const double> last(std::int64_t count) const;

  // 0 where there is no value.
  double latest() const;
  double mean(std::int64_t window = 0) const;
  double min(std::int64_t window = 0) const;
  double max(std::int64_t window = 0) const;

  /// Of the straight line with the least squares of errors, against 0, 1, 2, …
  double slope(std::int64_t window = 0) const;
  /// |slope| < tolerance.
  bool stalled(std::int64_t window, double tolerance) const;
  /// True if the fitted slope is in the better direction.
  bool improving(std::int64_t window = 0) const;
  /// The variance (of the population) < tolerance.
  bool converged(std::int64_t window, double tolerance) const;

 private:
  std::span<const double> newest(std::int64_t window) const;

  std::vector<double> values_;
  Direction direction_ = Direction::kLowerIsBetter;
};

/// Several trends together. Empty groups: all_*() is false.
class TrendGroup {
 public:
  TrendGroup() = default;
  explicit TrendGroup(std::vector<Trend> trends) : trends_(std::move(trends)) {}

  const std::vector<Trend>& trends() const { return trends_; }

  bool all_improving(std::int64_t window = 0) const;
  bool any_improving(std::int64_t window = 0) const;
  bool all_stalled(std::int64_t window, double tolerance) const;
  bool any_stalled(std::int64_t window, double tolerance) const;
  bool all_converged(std::int64_t window, double tolerance) const;
  bool any_converged(std::int64_t window, double tolerance) const;

  /// 0 where there is no trend.
  double mean_slope(std::int64_t window = 0) const;
  std::vector<double> slopes(std::int64_t window = 0) const;

 private:
  std::vector<Trend> trends_;
};

}  // namespace treadle

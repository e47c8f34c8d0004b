#include <treadle/core/history/trend.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace treadle {
namespace {

double mean_of(std::span<const double> values) {
  if (values.empty())
    return 0;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace

Trend::Trend(std::vector<double> values, Direction direction)
    : values_(std::move(values)), direction_(direction) {}

std::span<const double> Trend::last(std::int64_t count) const {
  const auto size = static_cast<std::int64_t>(values_.size());
  const std::int64_t kept = std::clamp<std::int64_t>(count, 0, size);
  return {values_.data() + (size - kept), static_cast<std::size_t>(kept)};
}

std::span<const double> Trend::newest(std::int64_t window) const {
  return window <= 0 ? std::span<const double>(values_) : last(window);
}

double Trend::latest() const {
  return values_.empty() ? 0 : values_.back();
}

double Trend::mean(std::int64_t window) const {
  return mean_of(newest(window));
}

double Trend::min(std::int64_t window) const {
  const auto values = newest(window);
  return values.empty() ? 0 : *std::min_element(values.begin(), values.end());
}

double Trend::max(std::int64_t window) const {
  const auto values = newest(window);
  return values.empty() ? 0 : *std::max_element(values.begin(), values.end());
}

double Trend::slope(std::int64_t window) const {
  const auto values = newest(window);
  if (values.size() < 2)
    return 0;
  // Both coordinates from their means: no large numbers are subtracted from each other.
  const double middle = (static_cast<double>(values.size()) - 1) / 2;
  const double mean = mean_of(values);
  double products = 0;
  double squares = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double x = static_cast<double>(i) - middle;
    products += x * (values[i] - mean);
    squares += x * x;
  }
  return products / squares;
}

bool Trend::stalled(std::int64_t window, double tolerance) const {
  return newest(window).size() >= 2 && std::abs(slope(window)) < tolerance;
}

bool Trend::improving(std::int64_t window) const {
  return direction_ == Direction::kHigherIsBetter ? slope(window) > 0 : slope(window) < 0;
}

bool Trend::converged(std::int64_t window, double tolerance) const {
  const auto values = newest(window);
  if (values.size() < 2)
    return false;
  const double mean = mean_of(values);
  double squares = 0;
  for (const double value : values)
    squares += (value - mean) * (value - mean);
  return squares / static_cast<double>(values.size()) < tolerance;
}

bool TrendGroup::all_improving(std::int64_t window) const {
  return !trends_.empty() && std::all_of(trends_.begin(), trends_.end(), [&](const Trend& trend) {
    return trend.improving(window);
  });
}

bool TrendGroup::any_improving(std::int64_t window) const {
  return std::any_of(trends_.begin(), trends_.end(),
                     [&](const Trend& trend) { return trend.improving(window); });
}

bool TrendGroup::all_stalled(std::int64_t window, double tolerance) const {
  return !trends_.empty() && std::all_of(trends_.begin(), trends_.end(), [&](const Trend& trend) {
    return trend.stalled(window, tolerance);
  });
}

bool TrendGroup::any_stalled(std::int64_t window, double tolerance) const {
  return std::any_of(trends_.begin(), trends_.end(),
                     [&](const Trend& trend) { return trend.stalled(window, tolerance); });
}

bool TrendGroup::all_converged(std::int64_t window, double tolerance) const {
  return !trends_.empty() && std::all_of(trends_.begin(), trends_.end(), [&](const Trend& trend) {
    return trend.converged(window, tolerance);
  });
}

bool TrendGroup::any_converged(std::int64_t window, double tolerance) const {
  return std::any_of(trends_.begin(), trends_.end(),
                     [&](const Trend& trend) { return trend.converged(window, tolerance); });
}

double TrendGroup::mean_slope(std::int64_t window) const {
  return mean_of(slopes(window));
}

std::vector<double> TrendGroup::slopes(std::int64_t window) const {
  std::vector<double> slopes;
  for (const Trend& trend : trends_)
    slopes.push_back(trend.slope(window));
  return slopes;
}

}  // namespace treadle

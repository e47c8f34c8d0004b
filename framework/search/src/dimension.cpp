// One dimension of a search space: its values, and the unit interval that tuners work in.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numeric>
#include <utility>

#include <treadle/search/search_space.h>

#include "space_checks.h"

namespace treadle {
namespace {

using Json = nlohmann::json;

// A number that is no further from a value is that value, as a share of the step.
constexpr double kSameStep = 1e-8;

/// Digits behind the point in the shortest decimal of a number: 2 of 0.25, 4 of 1e-4, none of 30.
int decimals_of(double number) {
  std::array<char, 32> text{};
  const char* const end =
      std::to_chars(text.data(), text.data() + text.size(), number, std::chars_format::scientific)
          .ptr;
  const std::string_view written(text.data(), static_cast<std::size_t>(end - text.data()));
  const std::size_t point = written.find('.');  // "2.5e-01"
  const std::size_t power = written.find('e');
  const int digits = point == std::string_view::npos ? 0 : static_cast<int>(power - point) - 1;
  int exponent = 0;
  std::from_chars(written.data() + power + 2, end, exponent);
  return std::max(digits - (written[power + 1] == '-' ? -exponent : exponent), 0);
}

/// low + index * step as on paper: 3 * 0.1 is 0.3, where floating-point numbers give
/// 0.30000000000000004. All three are counted in units of the last decimal, and one division of
/// exact numbers rounds.
double in_decimals(double low, double step, std::int64_t index) {
  constexpr int kMostDecimals = 15;  // a number with more is no decimal that somebody has written
  const double plain = low + static_cast<double>(index) * step;
  const int decimals = std::max(decimals_of(low), decimals_of(step));
  if (decimals > kMostDecimals)
    return plain;
  double scale = 1;
  for (int i = 0; i < decimals; ++i)
    scale *= 10;
  const double units =
      std::round(low * scale) + static_cast<double>(index) * std::round(step * scale);
  return std::abs(units) < static_cast<double>(internal::kLargestInteger) ? units / scale : plain;
}

}  // namespace

std::int64_t Dimension::count() const {
  if (kind == Kind::kChoice)
    return static_cast<std::int64_t>(choices.size());
  if (kind == Kind::kInteger && step == 0)
    return static_cast<std::int64_t>(high - low) + 1;
  return step == 0 ? 0 : static_cast<std::int64_t>(std::round((high - low) / step)) + 1;
}

double Dimension::value(std::int64_t index) const {
  if (kind == Kind::kChoice)
    return static_cast<double>(index);
  // The last value is the upper bound itself, whatever the steps round to.
  if (index == count() - 1)
    return high;
  if (kind == Kind::kFloat)
    return in_decimals(low, step, index);
  return low + static_cast<double>(index) * (step == 0 ? 1 : step);
}

std::int64_t Dimension::index(double number) const {
  const double first = kind == Kind::kChoice ? 0 : low;
  const double width = kind == Kind::kChoice || step == 0 ? 1 : step;
  const double nearest = std::round((number - first) / width);
  const double last = static_cast<double>(count() - 1);
  return static_cast<std::int64_t>(std::min(std::max(nearest, 0.0), last));
}

double Dimension::nearest(double number) const {
  if (count() > 0)
    return value(index(number));
  return std::min(std::max(number, low), high);
}

bool Dimension::contains(double number) const {
  if (std::isnan(number))
    return false;
  if (count() == 0)
    return number >= low && number <= high;
  return number == value(index(number));
}

double Dimension::share(std::size_t choice) const {
  return weights.empty() ? 1 / static_cast<double>(choices.size()) : weights[choice];
}

double Dimension::from_unit(double position) const {
  const double at = std::isnan(position) ? 0.5 : std::min(std::max(position, 0.0), 1.0);
  const std::int64_t values = count();
  if (!weights.empty()) {
    std::size_t choice = 0;
    for (double end = weights[0]; choice + 1 < weights.size() && end <= at; end += weights[choice])
      ++choice;
    return static_cast<double>(choice);
  }
  // The ends are the bounds themselves, whatever their logarithms round to.
  if (log && (at == 0 || at == 1))
    return at == 0 ? low : high;
  if (log) {
    const double half = values > 0 ? 0.5 : 0;
    const double first = std::log(low - half);
    return nearest(std::exp(first + at * (std::log(high + half) - first)));
  }
  if (values == 0)
    return std::min(low + at * (high - low), high);
  const auto index = static_cast<std::int64_t>(at * static_cast<double>(values));
  return value(std::min(index, values - 1));
}

double Dimension::to_unit(double number) const {
  const std::int64_t values = count();
  if (!weights.empty()) {
    const auto choice = weights.begin() + static_cast<std::ptrdiff_t>(index(number));
    return std::accumulate(weights.begin(), choice, 0.0) + 0.5 * *choice;
  }
  if (log) {
    const double half = values > 0 ? 0.5 : 0;
    const double first = std::log(low - half);
    return (std::log(number) - first) / (std::log(high + half) - first);
  }
  if (values == 0)
    return (number - low) / (high - low);
  return (static_cast<double>(index(number)) + 0.5) / static_cast<double>(values);
}

Json Dimension::json(double number) const {
  if (kind == Kind::kChoice)
    return choices[static_cast<std::size_t>(number)];
  if (kind == Kind::kInteger)
    return static_cast<std::int64_t>(number);
  return number;
}

std::optional<double> Dimension::read(const Json& written) const {
  if (kind == Kind::kChoice) {
    const auto found = std::find(choices.begin(), choices.end(), written);
    return found == choices.end() ? std::nullopt
                                  : std::optional(static_cast<double>(found - choices.begin()));
  }
  const std::optional<double> number = internal::bound_of(written, kind);
  if (!number || std::isnan(*number))
    return std::nullopt;
  // Programs that add up steps write the rounding as well, such as 0.30000000000000004.
  const double value = nearest(*number);
  return std::abs(value - *number) <= kSameStep * step ? std::optional(value) : std::nullopt;
}

Dimension uniform(std::string name, double low, double high, double step) {
  Dimension dimension;
  dimension.name = std::move(name);
  dimension.low = low;
  dimension.high = high;
  dimension.step = step;
  return dimension;
}

Dimension log_uniform(std::string name, double low, double high) {
  Dimension dimension = uniform(std::move(name), low, high);
  dimension.log = true;
  return dimension;
}

Dimension integers(std::string name, std::int64_t low, std::int64_t high, std::int64_t step) {
  Dimension dimension = uniform(std::move(name), static_cast<double>(low),
                                static_cast<double>(high), static_cast<double>(step));
  dimension.kind = Dimension::Kind::kInteger;
  return dimension;
}

Dimension log_integers(std::string name, std::int64_t low, std::int64_t high) {
  Dimension dimension = integers(std::move(name), low, high, 0);
  dimension.log = true;
  return dimension;
}

Dimension choice(std::string name, std::vector<Json> choices, std::vector<double> weights) {
  Dimension dimension;
  dimension.name = std::move(name);
  dimension.kind = Dimension::Kind::kChoice;
  dimension.choices = std::move(choices);
  dimension.weights = std::move(weights);
  return dimension;
}

Dimension when(Dimension dimension, std::string parent, std::vector<std::size_t> choices) {
  dimension.when = Dimension::Condition{std::move(parent), std::move(choices)};
  return dimension;
}

}  // namespace treadle

#include <treadle/search/search_space.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>

#include "space_checks.h"

namespace treadle {
namespace {

using Json = nlohmann::json;

constexpr double kInactive = std::numeric_limits<double>::quiet_NaN();

// Weights whose sum is 1 but for rounding stay as they are, so that a space that was written and
// read is the same.
void normalize(std::vector<double>& weights) {
  const double sum = internal::sum_of(weights);
  if (std::abs(sum - 1) <= 1e-12)
    return;
  for (double& weight : weights)
    weight /= sum;
}

}  // namespace

Point::Point(std::size_t dimensions) : values_(dimensions, kInactive) {}

bool Point::is_active(std::size_t dimension) const {
  return !std::isnan(values_[dimension]);
}

std::size_t Point::choice(std::size_t dimension) const {
  TREADLE_EXPECTS(is_active(dimension), "an inactive dimension has no choice");
  return static_cast<std::size_t>(values_[dimension]);
}

void Point::deactivate(std::size_t dimension) {
  values_[dimension] = kInactive;
}

bool Point::operator==(const Point& other) const {
  if (size() == other.size() &&
      std::memcmp(values_.data(), other.values_.data(), size() * sizeof(double)) == 0)
    return true;
  return std::equal(values_.begin(), values_.end(), other.values_.begin(), other.values_.end(),
                    [](double a, double b) {
                      return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b) ||
                             (std::isnan(a) && std::isnan(b));
                    });
}

SearchSpace::SearchSpace(std::vector<Dimension> dimensions) : dimensions_(std::move(dimensions)) {
  internal::SpaceProblems problems(nullptr);
  if (dimensions_.empty())
    problems.add("", "", "the space of a search has at least one dimension, got none");
  std::sort(dimensions_.begin(), dimensions_.end(),
            [](const Dimension& a, const Dimension& b) { return a.name < b.name; });
  for (std::size_t d = 0; d < size(); ++d) {
    internal::check_dimension(dimensions_[d], problems);
    if (d > 0 && dimensions_[d].name == dimensions_[d - 1].name)
      problems.add(dimensions_[d].name, "", "is in the space twice");
  }
  problems.throw_if_any();
  for (Dimension& dimension : dimensions_) {
    if (!dimension.weights.empty())
      normalize(dimension.weights);
  }

  parents_.resize(size());
  children_.resize(size());
  for (std::size_t d = 0; d < size(); ++d) {
    const auto& when = dimensions_[d].when;
    if (!when)
      continue;
    is_conditional_ = true;
    const Dimension* const parent =
        internal::parent_of(dimensions_[d], when->parent, dimensions_, problems);
    if (parent == nullptr)
      continue;
    const bool are_choices =
        !when->choices.empty() &&
        std::all_of(when->choices.begin(), when->choices.end(),
                    [&](std::size_t choice) { return choice < parent->choices.size(); });
    if (!are_choices) {
      problems.add(dimensions_[d].name, "when",
                   "expected indices of choices of " + quote_text(when->parent));
    }
    parents_[d] = static_cast<std::size_t>(parent - dimensions_.data());
    children_[*parents_[d]].push_back(d);
  }
  problems.throw_if_any();

  for (std::size_t d = 0; d < size(); ++d) {
    if (!parents_[d])
      order_.push_back(d);
  }
  for (std::size_t at = 0; at < order_.size(); ++at) {
    const auto& below = children_[order_[at]];
    order_.insert(order_.end(), below.begin(), below.end());
  }
  if (order_.size() < size()) {
    for (std::size_t d = 0; d < size(); ++d) {
      if (std::find(order_.begin(), order_.end(), d) == order_.end())
        problems.add(dimensions_[d].name, "when", "the condition depends on itself");
    }
  }
  problems.throw_if_any();
}

std::optional<std::size_t> SearchSpace::find(std::string_view name) const {
  const auto found = std::lower_bound(
      dimensions_.begin(), dimensions_.end(), name,
      [](const Dimension& dimension, std::string_view wanted) { return dimension.name < wanted; });
  if (found == dimensions_.end() || found->name != name)
    return std::nullopt;
  return static_cast<std::size_t>(found - dimensions_.begin());
}

bool SearchSpace::is_enabled(std::size_t dimension, const Point& point) const {
  const auto& parent = parents_[dimension];
  if (!parent)
    return true;
  if (!point.is_active(*parent))
    return false;
  const auto& choices = dimensions_[dimension].when->choices;
  return std::find(choices.begin(), choices.end(), point.choice(*parent)) != choices.end();
}

bool SearchSpace::contains(const Point& point) const {
  if (point.size() != size())
    return false;
  for (const std::size_t d : order_) {
    if (point.is_active(d) != is_enabled(d, point))
      return false;
    if (point.is_active(d) && !dimensions_[d].contains(point[d]))
      return false;
  }
  return true;
}

Point SearchSpace::from_unit(std::span<const double> positions) const {
  TREADLE_EXPECTS(positions.size() == size(), "one position per dimension");
  Point point(size());
  for (const std::size_t d : order_) {
    if (is_enabled(d, point))
      point.set(d, dimensions_[d].from_unit(positions[d]));
  }
  return point;
}

std::vector<double> SearchSpace::to_unit(const Point& point) const {
  TREADLE_EXPECTS(point.size() == size(), "the point is of another space");
  std::vector<double> positions(size(), 0.5);
  for (std::size_t d = 0; d < size(); ++d) {
    if (point.is_active(d))
      positions[d] = dimensions_[d].to_unit(point[d]);
  }
  return positions;
}

Point SearchSpace::random(RandomBits& bits) const {
  return random(bits, std::vector<std::optional<double>>(size()));
}

Point SearchSpace::random(RandomBits& bits, std::span<const std::optional<double>> given) const {
  TREADLE_EXPECTS(given.size() == size(), "one element per dimension");
  std::vector<double> positions(size());
  for (double& position : positions)
    position = bits.uniform();
  Point point(size());
  for (const std::size_t d : order_) {
    if (is_enabled(d, point))
      point.set(d, given[d] ? *given[d] : dimensions_[d].from_unit(positions[d]));
  }
  return point;
}

Json SearchSpace::to_json(const Point& point) const {
  TREADLE_EXPECTS(point.size() == size(), "the point is of another space");
  Json values = Json::object();
  for (std::size_t d = 0; d < size(); ++d) {
    if (point.is_active(d))
      values[dimensions_[d].name] = dimensions_[d].json(point[d]);
  }
  return values;
}

Point SearchSpace::from_json(const Json& values) const {
  const auto refuse = [](const std::string& name, const std::string& why) {
    throw StorageError("a trial of another space: " + quote_text(name) + " " + why);
  };
  if (!values.is_object())
    throw StorageError("expected the values of a trial, got " + describe_value(values));
  for (const auto& [name, unused] : values.items()) {
    if (!find(name))
      refuse(name, "is no dimension of the space");
  }
  Point point(size());
  for (const std::size_t d : order_) {
    const Dimension& dimension = dimensions_[d];
    const auto found = values.find(dimension.name);
    if (is_enabled(d, point) != (found != values.end())) {
      refuse(dimension.name,
             found == values.end() ? "is missing" : "has a value, and its condition does not hold");
    }
    if (found == values.end())
      continue;
    const std::optional<double> value = dimension.read(*found);
    if (!value) {
      refuse(dimension.name,
             "is " + quote_value(*found) +
                 (dimension.kind == Dimension::Kind::kChoice ? ", which is none of the choices"
                                                             : ", which is outside the range"));
    }
    point.set(d, *value);
  }
  return point;
}

}  // namespace treadle

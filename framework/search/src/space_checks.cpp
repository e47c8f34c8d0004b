#include "space_checks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <utility>

#include <treadle/base/json_words.h>
#include <treadle/base/near_miss.h>

namespace treadle::internal {
namespace {

using Json = nlohmann::json;

// Without the digits that rounding leaves.
std::string bound_text(double number) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.12g", number);
  return text.data();
}

bool is_path(std::string_view name) {
  if (name.starts_with('/'))
    return name.size() > 1;
  return !name.empty() && name.front() != '.' && name.back() != '.' &&
         name.find("..") == std::string_view::npos;
}

// The rules that hold wherever a dimension comes from.
void check_range(const Dimension& dimension, std::string_view key, SpaceProblems& problems) {
  const auto fail = [&](std::string_view at, std::string message) {
    problems.add(dimension.name, at, std::move(message));
  };
  if (!std::isfinite(dimension.low) || !std::isfinite(dimension.high))
    return fail(key, "expected two finite numbers");
  if (dimension.low >= dimension.high) {
    return fail(key, "expected [low, high] with low < high, got [" + bound_text(dimension.low) +
                         ", " + bound_text(dimension.high) + "]");
  }
  if (!std::isfinite(dimension.high - dimension.low))
    return fail(key, "the range is too wide for floating-point numbers");
  if (dimension.log && dimension.low <= 0) {
    return fail(key, "a logarithmic range begins above 0, got " + bound_text(dimension.low) +
                         "; raise it, or write " +
                         quote_text(key == "log_int" ? "int" : "uniform"));
  }
  if (dimension.kind == Dimension::Kind::kInteger &&
      (dimension.low < -static_cast<double>(kLargestInteger) ||
       dimension.high > static_cast<double>(kLargestInteger)))
    return fail(key, "expected integers between -2^53 and 2^53");
  if (dimension.step == 0)
    return;
  if (!(dimension.step > 0) || !std::isfinite(dimension.step))
    return fail("step", "must be > 0, got " + bound_text(dimension.step));
  const double steps = (dimension.high - dimension.low) / dimension.step;
  if (steps > static_cast<double>(kLargestInteger))
    return fail("step", "is too small for the range");
  if (std::abs(steps - std::round(steps)) > 1e-8 * std::max(1.0, steps)) {
    const double last = dimension.low + std::floor(steps) * dimension.step;
    fail("step", "must divide the range; the last value in it is " + bound_text(last) +
                     ": write [" + bound_text(dimension.low) + ", " + bound_text(last) + "]");
  }
}

void check_choices(const Dimension& dimension, SpaceProblems& problems) {
  if (dimension.choices.empty())
    problems.add(dimension.name, "choice", "expected at least one value, got none");
  for (std::size_t i = 0; i < dimension.choices.size(); ++i) {
    const auto begin = dimension.choices.begin();
    if (std::find(begin, begin + static_cast<std::ptrdiff_t>(i), dimension.choices[i]) !=
        begin + static_cast<std::ptrdiff_t>(i)) {
      problems.add(dimension.name, "choice",
                   "has " + quote_value(dimension.choices[i]) + " twice; leave one out");
      return;
    }
  }
}

// Of all weights together; a part of the unit interval as short as that would not be found again.
constexpr double kLeastShare = 1e-9;

void check_weights(const Dimension& dimension, SpaceProblems& problems) {
  const std::vector<double>& weights = dimension.weights;
  const auto fail = [&](std::string message) {
    problems.add(dimension.name, "weights", std::move(message));
  };
  if (weights.empty())
    return;
  if (weights.size() != dimension.choices.size()) {
    return fail("expected a weight for each of the " + std::to_string(dimension.choices.size()) +
                " choices, got " + std::to_string(weights.size()));
  }
  const double sum = sum_of(weights);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const std::string of_choice =
        bound_text(weights[i]) + " for " + quote_value(dimension.choices[i]);
    if (!std::isfinite(weights[i]) || weights[i] <= 0)
      return fail("must be > 0, got " + of_choice + "; leave a choice out that is not to be drawn");
    if (!std::isfinite(sum))
      return fail("have too large a sum");
    if (weights[i] < kLeastShare * sum)
      return fail(of_choice + " is less than a billionth of all weights; leave the choice out");
  }
}

const Dimension* named(const std::vector<Dimension>& dimensions, std::string_view name) {
  const auto found =
      std::find_if(dimensions.begin(), dimensions.end(),
                   [&](const Dimension& dimension) { return dimension.name == name; });
  return found == dimensions.end() ? nullptr : &*found;
}

}  // namespace

void SpaceProblems::add(const std::string& name, std::string_view key, std::string message) {
  Problem problem;
  if (space_ != nullptr)
    problem.pointer = space_->pointer();
  if (!name.empty())
    problem.pointer = child_pointer(problem.pointer, key_of(name));
  if (!key.empty())
    problem.pointer = child_pointer(problem.pointer, key);
  if (space_ != nullptr && space_->places())
    problem.place = space_->places()->place_of(problem.pointer);
  problem.message = std::move(message);
  const bool is_known = std::any_of(
      problems_.begin(), problems_.end(), [&](const Problem& other) {  // of an index before
        return other.pointer == problem.pointer && other.message == problem.message;
      });
  if (!is_known)
    problems_.push_back(std::move(problem));
}

std::string_view key_of(const Dimension& dimension) {
  if (dimension.kind == Dimension::Kind::kChoice)
    return "choice";
  if (dimension.kind == Dimension::Kind::kInteger)
    return dimension.log ? "log_int" : "int";
  return dimension.log ? "log_uniform" : "uniform";
}

std::optional<double> bound_of(const Json& value, Dimension::Kind kind) {
  if (kind == Dimension::Kind::kInteger ? !value.is_number_integer() : !value.is_number())
    return std::nullopt;
  return value.get<double>();
}

double sum_of(const std::vector<double>& weights) {
  return std::accumulate(weights.begin(), weights.end(), 0.0);
}

void check_dimension(const Dimension& dimension, SpaceProblems& problems) {
  if (!is_path(dimension.name)) {
    problems.add(dimension.name, "",
                 "expected the path of a value, such as \"optimizer.learning_rate\", got " +
                     quote_text(dimension.name));
  }
  if (dimension.kind == Dimension::Kind::kChoice) {
    check_choices(dimension, problems);
    check_weights(dimension, problems);
  } else {
    check_range(dimension, key_of(dimension), problems);
  }
}

const Dimension* parent_of(const Dimension& child, std::string_view parent,
                           const std::vector<Dimension>& dimensions, SpaceProblems& problems) {
  const Dimension* const found = named(dimensions, parent);
  if (found != nullptr && found->kind == Dimension::Kind::kChoice)
    return found;
  if (found != nullptr) {
    problems.add(child.name, "when",
                 "a condition is about a \"choice\", and " + quote_text(parent) + " is none");
    return nullptr;
  }
  std::vector<std::string> choices;
  for (const Dimension& dimension : dimensions) {
    if (dimension.kind == Dimension::Kind::kChoice)
      choices.push_back(dimension.name);
  }
  problems.add(child.name, "when",
               "the space has no " + quote_text(parent) + did_you_mean(parent, choices) +
                   "; its choices are: " + name_list(choices));
  return nullptr;
}

}  // namespace treadle::internal

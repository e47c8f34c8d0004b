#include <treadle/core/search_space.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/near_miss.h>

namespace treadle {
namespace {

using Json = nlohmann::json;

constexpr double kInactive = std::numeric_limits<double>::quiet_NaN();
// Integers up to here are doubles without rounding.
constexpr std::int64_t kLargestInteger = std::int64_t{1} << 53;
// A number that is no further from a value is that value, as a share of the step.
constexpr double kSameStep = 1e-8;

/// One way to write a dimension.
struct Form {
  std::string_view key;
  Dimension::Kind kind;
  bool log;
  bool takes_step;
};
constexpr std::array kForms{Form{"uniform", Dimension::Kind::kFloat, false, true},
                            Form{"log_uniform", Dimension::Kind::kFloat, true, false},
                            Form{"int", Dimension::Kind::kInteger, false, true},
                            Form{"log_int", Dimension::Kind::kInteger, true, false},
                            Form{"choice", Dimension::Kind::kChoice, false, false}};

std::vector<std::string> form_keys() {
  std::vector<std::string> keys;
  for (const Form& form : kForms)
    keys.emplace_back(form.key);
  return keys;
}

// Without the digits that rounding leaves.
std::string bound_text(double number) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.12g", number);
  return text.data();
}

/// Collects the problems of a space.
class SpaceProblems {
 public:
  explicit SpaceProblems(const Config* space) : space_(space) {}

  /// The dimension is one of those that are written as `key`.
  void is_written_as(const std::string& name, const std::string& key) { keys_[name] = key; }
  const std::string& key_of(const std::string& name) const {
    const auto found = keys_.find(name);
    return found == keys_.end() ? name : found->second;
  }

  void add(const std::string& name, std::string_view key, std::string message) {
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

  std::size_t count() const { return problems_.size(); }
  void throw_if_any() {
    if (!problems_.empty())
      throw DocumentError(std::move(problems_));
  }

 private:
  const Config* space_;
  std::map<std::string, std::string> keys_;  // by name, where they differ
  std::vector<Problem> problems_;
};

constexpr std::size_t kMostIndices = 1000;

/// The paths that "cells.{0..2}" stands for: one for each index. Of any other key, the key.
std::vector<std::string> paths_of(const std::string& key, SpaceProblems& problems) {
  const std::size_t begin = key.find('{');
  const std::size_t end = key.find('}');
  std::size_t first = 0;
  std::size_t last = 0;
  if (begin == std::string::npos || end == std::string::npos || end < begin)
    return {key};
  const char* const stop = key.data() + end;
  const auto low = std::from_chars(key.data() + begin + 1, stop, first);
  const bool has_dots = std::string_view(low.ptr, stop).starts_with("..");
  if (low.ec != std::errc() || !has_dots)
    return {key};
  const auto high = std::from_chars(low.ptr + 2, stop, last);
  if (high.ec != std::errc() || high.ptr != stop)
    return {key};
  if (first > last || last - first >= kMostIndices) {
    problems.add(key, "",
                 "expected {first..last} with first <= last, of at most " +
                     std::to_string(kMostIndices) + " indices");
    return {};
  }
  std::vector<std::string> paths;
  for (std::size_t index = first; index <= last; ++index) {
    paths.push_back(key.substr(0, begin) + std::to_string(index) + key.substr(end + 1));
    problems.is_written_as(paths.back(), key);
  }
  return paths;
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

double sum_of(const std::vector<double>& weights) {
  return std::accumulate(weights.begin(), weights.end(), 0.0);
}

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

std::optional<double> bound_of(const Json& value, Dimension::Kind kind) {
  if (kind == Dimension::Kind::kInteger ? !value.is_number_integer() : !value.is_number())
    return std::nullopt;
  return value.get<double>();
}

bool read_weights(Dimension& dimension, const Json& written, SpaceProblems& problems) {
  const bool are_numbers =
      written.is_array() && !written.empty() &&
      std::all_of(written.begin(), written.end(), [](const Json& one) { return one.is_number(); });
  if (are_numbers) {
    dimension.weights = written.get<std::vector<double>>();
  } else {
    problems.add(dimension.name, "weights",
                 "expected an array of numbers, one for each choice, got " +
                     (written.is_array() ? quote_value(written) : describe_value(written)));
  }
  return are_numbers;
}

/// Reads what stands under one path. The condition is left to read_condition().
std::optional<Dimension> read_dimension(const std::string& name, const Json& written,
                                        SpaceProblems& problems) {
  if (!written.is_object()) {
    problems.add(
        name, "",
        "expected an object such as {\"uniform\": [0, 1]}, got " + describe_value(written));
    return std::nullopt;
  }
  const Form* form = nullptr;
  for (const Form& one : kForms) {
    if (!written.contains(one.key))
      continue;
    if (form != nullptr) {
      problems.add(name, one.key,
                   "a dimension is one of " + quoted_list(form_keys()) + "; leave out " +
                       quote_text(form->key) + " or " + quote_text(one.key));
      return std::nullopt;
    }
    form = &one;
  }
  std::vector<std::string> known = form_keys();
  known.insert(known.end(), {"step", "weights", "when"});
  for (const auto& [key, unused] : written.items()) {
    if (std::find(known.begin(), known.end(), key) == known.end())
      problems.add(name, key, "unknown key " + quote_text(key) + did_you_mean(key, known));
  }
  if (form == nullptr) {
    problems.add(name, "", "expected one of " + quoted_list(form_keys()));
    return std::nullopt;
  }

  Dimension dimension;
  dimension.name = name;
  dimension.kind = form->kind;
  dimension.log = form->log;
  const Json& value = written.at(form->key);
  if (written.contains("step") && !form->takes_step) {
    problems.add(name, "step", "has no effect with " + quote_text(form->key) + "; leave it out");
  }
  const bool is_choice = form->kind == Dimension::Kind::kChoice;
  if (written.contains("weights") && !is_choice) {
    problems.add(name, "weights", "has no effect with " + quote_text(form->key) + "; leave it out");
  }
  if (is_choice) {
    if (!value.is_array()) {
      problems.add(name, "choice", "expected an array of values, got " + describe_value(value));
      return std::nullopt;
    }
    dimension.choices.assign(value.begin(), value.end());
    if (written.contains("weights") && !read_weights(dimension, written.at("weights"), problems))
      return std::nullopt;
    return dimension;
  }
  const char* const numbers =
      form->kind == Dimension::Kind::kInteger ? "two integers" : "two numbers";
  const auto low = value.is_array() && value.size() == 2 ? bound_of(value[0], form->kind)
                                                         : std::optional<double>();
  const auto high = low ? bound_of(value[1], form->kind) : std::optional<double>();
  if (!high) {
    problems.add(name, form->key,
                 std::string("expected ") + numbers + ", [low, high], got " +
                     (value.is_array() ? quote_value(value) : describe_value(value)));
    return std::nullopt;
  }
  dimension.low = *low;
  dimension.high = *high;
  if (form->kind == Dimension::Kind::kInteger && !form->log)
    dimension.step = 1;
  if (written.contains("step") && form->takes_step) {
    const auto step = bound_of(written.at("step"), form->kind);
    if (!step || *step <= 0) {
      problems.add(name, "step",
                   std::string("expected ") +
                       (form->kind == Dimension::Kind::kInteger ? "an integer" : "a number") +
                       " > 0, got " + describe_value(written.at("step")));
      return std::nullopt;
    }
    dimension.step = *step;
  }
  return dimension;
}

const Dimension* named(const std::vector<Dimension>& dimensions, std::string_view name) {
  const auto found =
      std::find_if(dimensions.begin(), dimensions.end(),
                   [&](const Dimension& dimension) { return dimension.name == name; });
  return found == dimensions.end() ? nullptr : &*found;
}

/// The parent of a condition, or null and a problem.
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

void read_condition(Dimension& dimension, const Json& written,
                    const std::vector<Dimension>& dimensions, SpaceProblems& problems) {
  if (!written.is_object() || written.size() != 1) {
    problems.add(dimension.name, "when",
                 "expected an object with one choice and its values, such as {\"optimizer\": "
                 "[\"sgd\"]}, got " +
                     (written.is_object() ? quote_value(written) : describe_value(written)));
    return;
  }
  const std::string name = written.begin().key();
  const Json& values = written.begin().value();
  const Dimension* const parent = parent_of(dimension, name, dimensions, problems);
  if (parent == nullptr)
    return;
  if (!values.is_array() || values.empty()) {
    problems.add(dimension.name, "when",
                 "expected an array with values of " + quote_text(name) + ", got " +
                     (values.is_array() ? "an empty one" : describe_value(values)));
    return;
  }
  Dimension::Condition condition{name, {}};
  for (const Json& value : values) {
    const auto found = std::find(parent->choices.begin(), parent->choices.end(), value);
    if (found == parent->choices.end()) {
      std::vector<std::string> choices;
      for (const Json& choice : parent->choices)
        choices.push_back(quote_value(choice));
      problems.add(dimension.name, "when",
                   quote_value(value) + " is none of the choices of " + quote_text(name) + ": " +
                       name_list(choices));
      return;
    }
    condition.choices.push_back(static_cast<std::size_t>(found - parent->choices.begin()));
  }
  std::sort(condition.choices.begin(), condition.choices.end());
  condition.choices.erase(std::unique(condition.choices.begin(), condition.choices.end()),
                          condition.choices.end());
  dimension.when = std::move(condition);
}

std::string_view key_of(const Dimension& dimension) {
  for (const Form& form : kForms) {
    if (form.kind == dimension.kind && form.log == dimension.log)
      return form.key;
  }
  return kForms.front().key;
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

// Weights whose sum is 1 but for rounding stay as they are, so that a space that was written and
// read is the same.
void normalize(std::vector<double>& weights) {
  const double sum = sum_of(weights);
  if (std::abs(sum - 1) <= 1e-12)
    return;
  for (double& weight : weights)
    weight /= sum;
}

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
  return std::abs(units) < static_cast<double>(kLargestInteger) ? units / scale : plain;
}

std::int64_t product(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  return __builtin_mul_overflow(a, b, &result) ? std::numeric_limits<std::int64_t>::max() : result;
}

std::int64_t sum(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  return __builtin_add_overflow(a, b, &result) ? std::numeric_limits<std::int64_t>::max() : result;
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
  const std::optional<double> number = bound_of(written, kind);
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

SearchSpace SearchSpace::parse(const Config& space) {
  SpaceProblems problems(&space);
  if (space.json().empty())
    problems.add("", "", "the space of a search has at least one dimension, got none");
  std::vector<Dimension> dimensions;
  for (const auto& [key, written] : space.json().items()) {
    for (const std::string& path : paths_of(key, problems)) {
      if (auto dimension = read_dimension(path, written, problems))
        dimensions.push_back(std::move(*dimension));
    }
  }
  // A condition on a dimension that could not be read would be a second problem of the same cause.
  if (problems.count() == 0) {
    for (Dimension& dimension : dimensions) {
      check_dimension(dimension, problems);
      const Json& written = space.json().at(problems.key_of(dimension.name));
      if (written.contains("when"))
        read_condition(dimension, written.at("when"), dimensions, problems);
    }
  }
  problems.throw_if_any();
  try {
    return SearchSpace(std::move(dimensions));
  } catch (const DocumentError& error) {
    for (const Problem& problem : error.problems()) {
      const std::string name = last_key(parent_pointer(problem.pointer));
      problems.add(name, last_key(problem.pointer), problem.message);
    }
    problems.throw_if_any();
    throw;
  }
}

SearchSpace::SearchSpace(std::vector<Dimension> dimensions) : dimensions_(std::move(dimensions)) {
  SpaceProblems problems(nullptr);
  if (dimensions_.empty())
    problems.add("", "", "the space of a search has at least one dimension, got none");
  std::sort(dimensions_.begin(), dimensions_.end(),
            [](const Dimension& a, const Dimension& b) { return a.name < b.name; });
  for (std::size_t d = 0; d < size(); ++d) {
    check_dimension(dimensions_[d], problems);
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
    const Dimension* const parent = parent_of(dimensions_[d], when->parent, dimensions_, problems);
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

Json SearchSpace::to_json() const {
  Json space = Json::object();
  for (const Dimension& dimension : dimensions_) {
    Json written;
    if (dimension.kind == Dimension::Kind::kChoice)
      written["choice"] = dimension.choices;
    else
      written[std::string(key_of(dimension))] = {dimension.json(dimension.low),
                                                 dimension.json(dimension.high)};
    if (!dimension.weights.empty())
      written["weights"] = dimension.weights;
    const double usual_step = dimension.kind == Dimension::Kind::kInteger ? 1 : 0;
    if (dimension.step != 0 && dimension.step != usual_step)
      written["step"] = dimension.json(dimension.step);
    if (dimension.when) {
      const Dimension& parent = dimensions_[*find(dimension.when->parent)];
      Json values = Json::array();
      for (const std::size_t choice : dimension.when->choices)
        values.push_back(parent.choices[choice]);
      written["when"] = {{parent.name, std::move(values)}};
    }
    space[dimension.name] = std::move(written);
  }
  return space;
}

SearchGrid::SearchGrid(const SearchSpace& space, std::int64_t points) : space_(&space) {
  TREADLE_EXPECTS(points >= 2, "a range has two ends");
  for (const Dimension& dimension : space.dimensions()) {
    std::vector<double> values;
    const std::int64_t all = dimension.count();
    const bool is_plain_range =
        dimension.kind != Dimension::Kind::kChoice &&
        (dimension.step == 0 ||
         (dimension.kind == Dimension::Kind::kInteger && dimension.step == 1));
    if (is_plain_range && (all == 0 || all > points)) {
      const double first = dimension.log ? std::log(dimension.low) : dimension.low;
      const double last = dimension.log ? std::log(dimension.high) : dimension.high;
      for (std::int64_t i = 0; i < points; ++i) {
        const double share = static_cast<double>(i) / static_cast<double>(points - 1);
        const double at = i == points - 1 ? last : first + share * (last - first);
        values.push_back(dimension.nearest(dimension.log ? std::exp(at) : at));
      }
      values.front() = dimension.low;
      values.back() = dimension.high;
      values.erase(std::unique(values.begin(), values.end()), values.end());
    } else {
      for (std::int64_t i = 0; i < all; ++i)
        values.push_back(dimension.value(i));
    }
    values_.push_back(std::move(values));
  }
  counts_.resize(space.size());
  const auto order = space.order();
  for (std::size_t at = order.size(); at-- > 0;) {
    const std::size_t d = order[at];
    counts_[d] = 0;
    for (const double value : values_[d])
      counts_[d] = sum(counts_[d], below(d, value));
    if (!space.parent(d))
      size_ = product(size_, counts_[d]);
  }
}

std::int64_t SearchGrid::below(std::size_t dimension, double value) const {
  std::int64_t combinations = 1;
  Point point(space_->size());
  point.set(dimension, value);
  for (const std::size_t child : space_->children(dimension)) {
    if (space_->is_enabled(child, point))
      combinations = product(combinations, counts_[child]);
  }
  return combinations;
}

void SearchGrid::fill(std::size_t dimension, std::int64_t index, Point& point) const {
  for (const double value : values_[dimension]) {
    const std::int64_t block = below(dimension, value);
    if (index >= block) {
      index -= block;
      continue;
    }
    point.set(dimension, value);
    const auto children = space_->children(dimension);
    for (std::size_t at = children.size(); at-- > 0;) {
      if (!space_->is_enabled(children[at], point))
        continue;
      fill(children[at], index % counts_[children[at]], point);
      index /= counts_[children[at]];
    }
    return;
  }
}

Point SearchGrid::at(std::int64_t index) const {
  TREADLE_EXPECTS(index >= 0 && index < size_, "the index lies within the grid");
  Point point(space_->size());
  for (std::size_t d = space_->size(); d-- > 0;) {
    if (space_->parent(d))
      continue;
    fill(d, index % counts_[d], point);
    index /= counts_[d];
  }
  return point;
}

}  // namespace treadle

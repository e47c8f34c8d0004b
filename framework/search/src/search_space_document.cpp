// How a search space is written in a document: read, and written again.
#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/near_miss.h>
#include <treadle/search/search_space.h>

#include "space_checks.h"

namespace treadle {
namespace {

using Json = nlohmann::json;
using internal::bound_of;
using internal::SpaceProblems;

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
  const Dimension* const parent = internal::parent_of(dimension, name, dimensions, problems);
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

}  // namespace

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
      internal::check_dimension(dimension, problems);
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

Json SearchSpace::to_json() const {
  Json space = Json::object();
  for (const Dimension& dimension : dimensions_) {
    Json written;
    if (dimension.kind == Dimension::Kind::kChoice)
      written["choice"] = dimension.choices;
    else
      written[std::string(internal::key_of(dimension))] = {dimension.json(dimension.low),
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

}  // namespace treadle

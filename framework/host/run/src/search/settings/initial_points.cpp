#include "search/settings/initial_points.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <utility>

#include <treadle/base/json_words.h>
#include <treadle/base/near_miss.h>
#include <treadle/base/problem.h>

namespace treadle::internal {
namespace {

using nlohmann::json;

constexpr const char* kInitial = "/search/initial";

std::string range_text(const Dimension& dimension) {
  if (dimension.kind == Dimension::Kind::kChoice) {
    std::vector<std::string> choices;
    for (const json& choice : dimension.choices)
      choices.push_back(quote_value(choice));
    return "one of " + name_list(choices);
  }
  std::string text = "a value from " + dimension.json(dimension.low).dump() + " to " +
                     dimension.json(dimension.high).dump();
  const double usual = dimension.kind == Dimension::Kind::kInteger ? 1 : 0;
  if (dimension.step != 0 && dimension.step != usual)
    text += " in steps of " + dimension.json(dimension.step).dump();
  return text;
}

/// One point of the list, and what is wrong with it.
class PointReader {
 public:
  PointReader(const ResolvedWorkflow& workflow, const SearchSpace& space,
              std::vector<Problem>& problems)
      : workflow_(workflow), space_(space), problems_(problems) {
    for (const Dimension& dimension : space.dimensions())
      names_.push_back(dimension.name);
  }

  GivenPoint read(const json& written, std::size_t index) {
    pointer_ = child_pointer(kInitial, index);
    GivenPoint given(space_.size());
    for (const auto& [name, value] : written.items()) {
      if (name == kPointDescription)
        continue;
      const std::optional<std::size_t> d = space_.find(name);
      if (!d) {
        complain(name, "the space has no " + quote_text(name) + did_you_mean(name, names_) +
                           "; its dimensions are: " + name_list(names_));
        continue;
      }
      given[*d] = space_[*d].read(value);
      if (!given[*d])
        complain(name, "expected " + range_text(space_[*d]) + ", got " + quote_value(value));
    }
    expect_conditions(written, given);
    return given;
  }

 private:
  /// What a value depends on is given with it, and holds.
  void expect_conditions(const json& written, const GivenPoint& given) {
    for (std::size_t d = 0; d < space_.size(); ++d) {
      const std::optional<std::size_t> parent = space_.parent(d);
      if (!given[d] || !parent)
        continue;
      const std::string& name = space_[d].name;
      const std::string& of = space_[*parent].name;
      if (!written.contains(of)) {
        complain(name, "depends on " + quote_text(of) + "; give that as well");
        continue;
      }
      const std::vector<std::size_t>& choices = space_[d].when->choices;
      const bool holds = !given[*parent] ||  // a problem of its own
                         std::find(choices.begin(), choices.end(),
                                   static_cast<std::size_t>(*given[*parent])) != choices.end();
      if (!holds) {
        complain(name, "has no effect where " + quote_text(of) + " is " +
                           quote_value(written.at(of)) + "; leave it out");
      }
    }
  }

  void complain(const std::string& name, std::string message) {
    const std::string pointer = child_pointer(pointer_, name);
    problems_.push_back({workflow_.document->place_of(pointer), pointer, std::move(message)});
  }

  const ResolvedWorkflow& workflow_;
  const SearchSpace& space_;
  std::vector<Problem>& problems_;
  std::vector<std::string> names_;
  std::string pointer_;
};

/// Numbers in four digits, components as calls, all else as it is, but for what is empty within.
std::string value_text(const json& value) {
  if (value.is_string())
    return value.get<std::string>();
  if (value.is_number_float()) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.4g", value.get<double>());
    return text.data();
  }
  if (!value.is_structured())
    return value.dump();
  const bool is_component = value.is_object() && value.contains("use");
  std::string text;
  for (const auto& [key, part] : value.items()) {
    if ((is_component && key == "use") || (part.is_structured() && part.empty()))
      continue;
    text += (text.empty() ? "" : ", ") + (value.is_object() ? key + "=" : "") + value_text(part);
  }
  if (value.is_array())
    return "[" + text + "]";
  return (is_component ? value_text(value.at("use")) : "") +
         (text.empty() && is_component ? "" : "(" + text + ")");
}

/// The shortest end of a path that is not the end of another, and no mere index.
std::string short_name(const SearchSpace& space, std::size_t dimension) {
  const std::string& path = space[dimension].name;
  for (std::size_t begin = path.size(); begin > 0;) {
    begin = path.find_last_of("./", begin - 1);
    if (begin == std::string::npos || begin == 0)
      break;
    const std::string end = path.substr(begin);  // with the separator
    const bool is_taken = std::any_of(
        space.dimensions().begin(), space.dimensions().end(), [&](const Dimension& other) {
          return &other != &space[dimension] &&
                 (other.name.ends_with(end) || other.name == end.substr(1));
        });
    if (!is_taken && std::isdigit(static_cast<unsigned char>(end[1])) == 0)
      return end.substr(1);
  }
  return path;
}

}  // namespace

std::vector<GivenPoint> initial_points_of(const ResolvedWorkflow& workflow,
                                          const SearchSpace& space, std::int64_t trials) {
  std::vector<GivenPoint> points;
  const json& search = workflow.resolved.at("search");
  if (!search.contains("initial"))
    return points;
  const json& written = search.at("initial");
  if (static_cast<std::int64_t>(written.size()) > trials) {
    throw DocumentError(
        {{workflow.document->place_of(kInitial), kInitial,
          "has " + std::to_string(written.size()) + " points, and the search makes " +
              std::to_string(trials) + " trials; raise \"trials\", or leave points out"}});
  }
  std::vector<Problem> problems;
  PointReader reader(workflow, space, problems);
  for (std::size_t i = 0; i < written.size(); ++i)
    points.push_back(reader.read(written[i], i));
  if (!problems.empty())
    throw DocumentError(std::move(problems));
  return points;
}

RandomStreams streams_of_search(const ResolvedWorkflow& workflow) {
  return RandomStreams(workflow.seed).part("search", 0);
}

std::optional<Point> point_of_trial(const SearchSpace& space, const Tuner& tuner,
                                    std::span<const GivenPoint> initial,
                                    std::span<const Trial> visible, std::int64_t number,
                                    const RandomStreams& random) {
  const auto index = static_cast<std::size_t>(number);
  if (index >= initial.size())
    return tuner.suggest(space, visible, number, random);
  RandomBits bits = random.bits("initial", {static_cast<std::uint64_t>(number)});
  return space.random(bits, initial[index]);
}

std::vector<Point> points_without_results(const SearchSpace& space, const Tuner& tuner,
                                          std::span<const GivenPoint> initial, std::int64_t trials,
                                          const RandomStreams& random) {
  std::vector<Trial> running;
  std::vector<Point> points;
  for (std::int64_t number = 0; number < trials; ++number) {
    const std::optional<Point> point =
        point_of_trial(space, tuner, initial, running, number, random);
    if (!point)
      break;
    points.push_back(*point);
    Trial& trial = running.emplace_back();
    trial.number = number;
    trial.point = *point;
    trial.is_suggested = static_cast<std::size_t>(number) >= initial.size();
  }
  return points;
}

std::string describe_point(const SearchSpace& space, const Point& point) {
  std::string text;
  for (std::size_t d = 0; d < space.size(); ++d) {
    if (point.is_active(d)) {
      text += (text.empty() ? "" : ", ") + short_name(space, d) + "=" +
              value_text(space[d].json(point[d]));
    }
  }
  return text;
}

}  // namespace treadle::internal

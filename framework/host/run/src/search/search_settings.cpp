#include "search/search_settings.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>

#include "load/document_slots.h"

namespace treadle::internal {
namespace {

constexpr const char* kSearch = "search";
/// An ensemble is chosen from so many of the best trials.
constexpr std::int64_t kCandidates = 50;
/// What all trials have in common: the data is opened and split once, and results are compared.
constexpr const char* kShared[] = {"treadle",    "name",      "seed",      "precision",
                                   "data",       "sequence",  "metrics",   "baselines",
                                   "validation", "observers", "resources", "search"};

Place place_of(const ResolvedWorkflow& workflow, const std::string& pointer) {
  return workflow.document->place_of(pointer);
}

/// The keys and indices of a path, indices with zeros in front, so that 2 comes before 10.
std::vector<std::string> sortable(const std::string& path) {
  constexpr std::size_t kDigits = 12;
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t end = std::min(path.find_first_of("./", begin), path.size());
    std::string part = path.substr(begin, end - begin);
    if (!part.empty() && part.size() < kDigits &&
        part.find_first_not_of("0123456789") == std::string::npos)
      part.insert(0, kDigits - part.size(), '0');
    parts.push_back(std::move(part));
    begin = end + 1;
  }
  return parts;
}

/// A choice before what depends on it: it replaces a whole component, perhaps. Else a value before
/// what lies within it, and elements of a list in the order of their indices, so that a list can be
/// filled.
std::vector<std::size_t> writing_order(const SearchSpace& space) {
  std::vector<std::size_t> order(space.order().begin(), space.order().end());
  const auto depth = [&](std::size_t dimension) {
    std::size_t steps = 0;
    for (auto parent = space.parent(dimension); parent; parent = space.parent(*parent))
      ++steps;
    return steps;
  };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(depth(a), sortable(space[a].name)) <
           std::pair(depth(b), sortable(space[b].name));
  });
  return order;
}

std::string pointer_of(const Dimension& dimension) {
  return child_pointer("/search/space", dimension.name);
}

void expect_free(const ResolvedWorkflow& workflow, const SearchSpace& space) {
  std::vector<Problem> problems;
  for (const Dimension& dimension : space.dimensions()) {
    const std::string root = dimension.name.substr(0, dimension.name.find('.'));
    if (std::find(std::begin(kShared), std::end(kShared), root) == std::end(kShared))
      continue;
    const std::string pointer = pointer_of(dimension);
    problems.push_back({place_of(workflow, pointer), pointer,
                        quote_text(root) + " is the same for all trials; search for values of the "
                                           "model, loss, optimizer, schedule, training or "
                                           "transforms"});
  }
  if (!problems.empty())
    throw DocumentError(std::move(problems));
}

/// A point in which the dimension is active and has this value.
Point point_with(const SearchSpace& space, std::size_t dimension, double value) {
  std::vector<double> positions(space.size(), 0.5);
  positions[dimension] = space[dimension].to_unit(value);
  for (std::size_t child = dimension; space.parent(child); child = *space.parent(child)) {
    const std::size_t parent = *space.parent(child);
    positions[parent] =
        space[parent].to_unit(static_cast<double>(space[child].when->choices.front()));
  }
  return space.from_unit(positions);
}

std::vector<double> ends_of(const Dimension& dimension) {
  if (dimension.kind != Dimension::Kind::kChoice)
    return {dimension.low, dimension.high};
  std::vector<double> all;
  for (std::size_t choice = 0; choice < dimension.choices.size(); ++choice)
    all.push_back(static_cast<double>(choice));
  return all;
}

/// Both ends of each range and every choice make a document that can be trained by.
void expect_documents(const Runtime& runtime, const ResolvedWorkflow& workflow,
                      const SearchSpace& space) {
  std::vector<Problem> problems;
  for (std::size_t i = 0; i < space.size(); ++i) {
    const Dimension& dimension = space[i];
    const std::string pointer = pointer_of(dimension);
    for (const double value : ends_of(dimension)) {
      try {
        trial_document(runtime, workflow, space, point_with(space, i, value));
      } catch (const Error& error) {
        std::string text = error.what();
        std::replace(text.begin(), text.end(), '\n', ' ');
        problems.push_back({place_of(workflow, pointer), pointer,
                            "with " + dimension.json(value).dump() + ": " + text});
        break;
      }
    }
  }
  if (!problems.empty())
    throw DocumentError(std::move(problems));
}

std::vector<std::string> objectives_in(const Config& search) {
  const nlohmann::json& objective = search.json().at("objective");
  if (objective.is_string())
    return {objective.get<std::string>()};
  return objective.get<std::vector<std::string>>();
}

std::vector<ConstraintSettings> constraints_in(const ResolvedWorkflow& workflow,
                                               const nlohmann::json& search) {
  std::vector<ConstraintSettings> constraints;
  if (!search.contains("constraints"))
    return constraints;
  for (const auto& [name, bounds] : search.at("constraints").items()) {
    ConstraintSettings& one = constraints.emplace_back();
    one.name = name;
    if (bounds.contains("min"))
      one.min = bounds.at("min").get<double>();
    if (bounds.contains("max"))
      one.max = bounds.at("max").get<double>();
    if (!one.min && !one.max) {
      fail_in_search(workflow, child_pointer("/search/constraints", name),
                     "a constraint has \"min\", \"max\" or both");
    }
    if (one.min && one.max && *one.min > *one.max) {
      fail_in_search(workflow, child_pointer("/search/constraints", name),
                     "\"min\" is above \"max\", which no trial can keep");
    }
  }
  return constraints;
}

double seconds_at(const ResolvedWorkflow& workflow, const std::string& pointer,
                  const std::string& text) {
  const Duration time = Duration::parse(text);
  if (time.unit != Duration::Unit::kSeconds || time.value <= 0) {
    fail_in_search(workflow, pointer,
                   "expected wall time above zero, such as \"2h\", \"30min\" or \"45s\", got " +
                       quote_text(time.text()));
  }
  return time.value;
}

void read_budget(const ResolvedWorkflow& workflow, const nlohmann::json& search,
                 SearchSettings& settings) {
  if (!search.contains("budget"))
    return;
  const nlohmann::json& budget = search.at("budget");
  if (budget.contains("time")) {
    settings.seconds =
        seconds_at(workflow, "/search/budget/time", budget.at("time").get<std::string>());
  }
  if (budget.contains("memory")) {
    const auto text = budget.at("memory").get<std::string>();
    settings.memory = parse_bytes(text);
    if (!settings.memory) {
      fail_in_search(workflow, "/search/budget/memory",
                     "expected a size such as \"8GiB\" or \"500MiB\", got " + quote_text(text));
    }
  }
}

}  // namespace

bool SearchSettings::needs_cost() const {
  const auto is_cost = [](const std::string& name) { return name == "flops" || name == "latency"; };
  return std::any_of(objectives.begin(), objectives.end(), is_cost) ||
         std::any_of(constraints.begin(), constraints.end(),
                     [&](const ConstraintSettings& one) { return is_cost(one.name); });
}

void fail_in_search(const ResolvedWorkflow& workflow, const std::string& pointer,
                    const std::string& message) {
  throw DocumentError({{place_of(workflow, pointer), pointer, message}});
}

std::optional<std::int64_t> parse_bytes(const std::string& text) {
  constexpr std::pair<const char*, double> kUnits[] = {
      {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1099511627776.0},
      {"KB", 1e3},      {"MB", 1e6},      {"GB", 1e9},      {"TB", 1e12}};
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || !std::isfinite(number) || number <= 0)
    return std::nullopt;
  const std::string unit = text.substr(static_cast<std::size_t>(end - text.c_str()));
  for (const auto& [name, size] : kUnits) {
    if (unit == name && number * size < 9e18)
      return static_cast<std::int64_t>(number * size);
  }
  return std::nullopt;
}

ResolvedWorkflow trial_document(const Runtime& runtime, const ResolvedWorkflow& workflow,
                                const SearchSpace& space, const Point& point) {
  nlohmann::json base = workflow.resolved;
  base.erase(kSearch);
  const std::shared_ptr<Document> document =
      Document::from_json(std::move(base), workflow.document->folder());
  for (const std::size_t dimension : writing_order(space)) {
    if (point.is_active(dimension))
      document->set(space[dimension].name, space[dimension].json(point[dimension]).dump());
  }
  return resolve_workflow(document, runtime.schemas());
}

std::optional<SearchSettings> search_of(const Runtime& runtime, const ResolvedWorkflow& workflow) {
  if (!workflow.resolved.contains(kSearch))
    return std::nullopt;
  const Config search = workflow.slot(kSearch);
  if (workflow.test_window) {
    fail_in_search(workflow, "/search",
                   "no rows validate a training that tests before it trains, so there is nothing "
                   "to choose by; leave \"search\" out");
  }
  SearchSettings settings{.space = SearchSpace::parse(search.child("space")),
                          .tuner = make_nested<Tuner>(runtime, search.child("tuner")),
                          .tuner_name = name_in(search.child("tuner")),
                          .objectives = objectives_in(search),
                          .trials = search.get<std::int64_t>("trials"),
                          .parallel = search.get<std::int64_t>("parallel"),
                          .asynchronous = search.get<bool>("asynchronous"),
                          .keep = search.get<std::int64_t>("keep")};
  const nlohmann::json& written = workflow.resolved.at(kSearch);
  if (written.contains("pruner")) {
    settings.pruner = make_nested<Pruner>(runtime, search.child("pruner"));
    settings.pruner_name = name_in(search.child("pruner"));
    settings.pruner_copies = runtime.schemas()
                                 .find("pruner", settings.pruner_name)
                                 .schema->value("x-treadle-copies", false);
  }
  if (written.contains("ensemble")) {
    settings.members = written.at("ensemble").at("size").get<std::int64_t>();
    settings.keep = std::max(settings.keep, kCandidates);
  }
  if (written.contains("storage")) {
    settings.storage = make_nested<StudyStorage>(runtime, search.child("storage"));
    settings.study = written.value("study", workflow.name);
    settings.lease = seconds_at(workflow, "/search/lease", search.get<std::string>("lease"));
  }
  settings.initial = initial_points_of(workflow, settings.space, settings.trials);
  settings.constraints = constraints_in(workflow, written);
  settings.machine = LatencyModel::from_json(written.value("latency", nlohmann::json::object()));
  read_budget(workflow, written, settings);
  if (settings.objectives.size() > 1) {
    if (!settings.tuner->takes_several_objectives()) {
      fail_in_search(workflow, "/search/tuner",
                     quote_text(settings.tuner_name) +
                         " minimizes one objective, and the search has " +
                         std::to_string(settings.objectives.size()) +
                         "; use \"tpe\", \"nsga_ii\" or \"random\"");
    }
    if (settings.pruner) {
      fail_in_search(workflow, "/search/pruner",
                     "trials with several objectives are not pruned: which is better on the way is "
                     "not defined; leave \"pruner\" out, or name one objective");
    }
  }
  expect_free(workflow, settings.space);
  expect_documents(runtime, workflow, settings.space);
  return settings;
}

}  // namespace treadle::internal

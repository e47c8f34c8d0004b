#include "search/settings/search_settings.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <initializer_list>
#include <iterator>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/host/run/search.h>

#include "document/document_slots.h"
#include "search/study/objectives.h"

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

/// Of "model.hidden.0" and of "/model/hidden/0".
std::vector<std::string> words_in(std::string_view path) {
  const char separator = path.starts_with('/') ? '/' : '.';
  std::vector<std::string> keys;
  for (std::size_t begin = separator == '/' ? 1 : 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find(separator, begin), path.size());
    keys.emplace_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return keys;
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

/// Whether the key, such as "cells.{0..2}", stands for a dimension of this name.
bool stands_for(std::string_view key, std::string_view name) {
  const std::size_t begin = key.find('{');
  const std::size_t end = key.find('}');
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin)
    return key == name;
  const std::string_view behind = key.substr(end + 1);
  if (name.size() <= begin + behind.size() || !name.starts_with(key.substr(0, begin)) ||
      !name.ends_with(behind))
    return false;
  const std::string_view index = name.substr(begin, name.size() - begin - behind.size());
  return index.find_first_not_of("0123456789") == std::string_view::npos;
}

/// Where the document writes the dimension.
std::string pointer_of(const ResolvedWorkflow& workflow, const Dimension& dimension) {
  const nlohmann::json& space = workflow.resolved.at(kSearch).at("space");
  if (!space.contains(dimension.name)) {
    for (const auto& [key, unused] : space.items()) {
      if (stands_for(key, dimension.name))
        return child_pointer("/search/space", key);
    }
  }
  return child_pointer("/search/space", dimension.name);
}

/// A problem for each place.
using ProblemsByPlace = std::map<std::string, std::string>;

void throw_if_any(const ResolvedWorkflow& workflow, const ProblemsByPlace& found) {
  std::vector<Problem> problems;
  for (const auto& [pointer, message] : found)
    problems.push_back({place_of(workflow, pointer), pointer, message});
  if (!problems.empty())
    throw DocumentError(std::move(problems));
}

void expect_free(const ResolvedWorkflow& workflow, const SearchSpace& space) {
  ProblemsByPlace problems;
  for (const Dimension& dimension : space.dimensions()) {
    const std::string root = words_in(dimension.name).front();
    if (std::find(std::begin(kShared), std::end(kShared), root) == std::end(kShared))
      continue;
    problems.emplace(pointer_of(workflow, dimension),
                     quote_text(root) +
                         " is the same for all trials; search for values of the model, loss, "
                         "optimizer, schedule, training or transforms");
  }
  throw_if_any(workflow, problems);
}

/// A point in which these dimensions are active and have these values.
Point point_with(const SearchSpace& space,
                 std::initializer_list<std::pair<std::size_t, double>> values) {
  std::vector<double> positions(space.size(), 0.5);
  for (const auto& [dimension, value] : values) {
    for (std::size_t child = dimension; space.parent(child); child = *space.parent(child)) {
      const std::size_t parent = *space.parent(child);
      positions[parent] =
          space[parent].to_unit(static_cast<double>(space[child].when->choices.front()));
    }
  }
  for (const auto& [dimension, value] : values)
    positions[dimension] = space[dimension].to_unit(value);
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

/// The run's document, without its `search`.
std::shared_ptr<Document> plain_document(const ResolvedWorkflow& workflow) {
  nlohmann::json base = workflow.resolved;
  base.erase(kSearch);
  return Document::from_json(std::move(base), workflow.document->folder());
}

/// How many keys two paths have in common, from the root on.
std::size_t common_keys(std::string_view a, std::string_view b) {
  const std::vector<std::string> left = words_in(a);
  const std::vector<std::string> right = words_in(b);
  const std::size_t most = std::min(left.size(), right.size());
  const auto [end, unused] =
      std::mismatch(left.begin(), left.begin() + static_cast<std::ptrdiff_t>(most), right.begin());
  return static_cast<std::size_t>(end - left.begin());
}

constexpr std::string_view kKind = ".use";

/// Whether it replaces the name of a component, and leaves it the parameters of another one.
bool is_kind(const Dimension& dimension) {
  return dimension.kind == Dimension::Kind::kChoice && dimension.name.ends_with(kKind);
}

/// What is wrong with the document of a point, and the dimension whose value it is about.
struct Misfit {
  std::size_t dimension;
  std::string text;
};

/// Documents of trials, and what is wrong with those that cannot be trained by.
class TrialDocuments {
 public:
  TrialDocuments(const Runtime& runtime, const ResolvedWorkflow& workflow, const SearchSpace& space)
      : runtime_(runtime), workflow_(workflow), space_(space), order_(writing_order(space)) {}

  /// `tried`: the dimension that the point was made for.
  std::vector<Misfit> misfits(const Point& point, std::size_t tried) const {
    const std::shared_ptr<Document> document = plain_document(workflow_);
    for (const std::size_t dimension : order_) {
      if (!point.is_active(dimension))
        continue;
      const std::string& path = space_[dimension].name;
      const std::string value = space_[dimension].json(point[dimension]).dump();
      try {
        document->set(path, value);
      } catch (const Error& error) {
        return {{dimension, without(error.what(), "--set " + path + "=" + value + ": ")}};
      }
    }
    std::vector<Misfit> found;
    try {
      resolve_workflow(document, runtime_.schemas());
    } catch (const DocumentError& error) {
      for (const Problem& problem : error.problems()) {
        found.push_back({dimension_of(problem.pointer, point, tried),
                         problem.pointer + ": " + problem.message});
      }
    } catch (const Error& error) {
      found.push_back({tried, error.what()});
    }
    return found;
  }

  bool fits(const Point& point, std::size_t dimension) const {
    const std::vector<Misfit> found = misfits(point, dimension);
    return std::none_of(found.begin(), found.end(),
                        [&](const Misfit& one) { return one.dimension == dimension; });
  }

 private:
  static std::string without(const std::string& text, const std::string& beginning) {
    return text.starts_with(beginning) ? text.substr(beginning.size()) : text;
  }

  /// The active dimension that shares the most of its path with the place of a problem. Of several
  /// the kind of a component before its parameters, and then `tried`.
  std::size_t dimension_of(const std::string& pointer, const Point& point,
                           std::size_t tried) const {
    const auto likeness = [&](std::size_t d) {
      return std::tuple(common_keys(space_[d].name, pointer), is_kind(space_[d]), d == tried);
    };
    std::size_t best = tried;
    for (std::size_t d = 0; d < space_.size(); ++d) {
      if (point.is_active(d) && likeness(d) > likeness(best))
        best = d;
    }
    return best;
  }

  const Runtime& runtime_;
  const ResolvedWorkflow& workflow_;
  const SearchSpace& space_;
  const std::vector<std::size_t> order_;
};

/// What makes a value fit that is for some components only: the `when` with these. Nothing where it
/// fits none.
std::string missing_condition(const TrialDocuments& documents, const SearchSpace& space,
                              std::size_t dimension, double value) {
  if (space[dimension].when)
    return {};
  for (std::size_t choice = 0; choice < space.size(); ++choice) {
    const bool is_around = space[choice].kind == Dimension::Kind::kChoice &&
                           space[dimension].name.starts_with(space[choice].name + ".");
    if (!is_around)
      continue;
    nlohmann::json fitting = nlohmann::json::array();
    for (const double component : ends_of(space[choice])) {
      const Point point = point_with(space, {{choice, component}, {dimension, value}});
      if (documents.fits(point, dimension))
        fitting.push_back(space[choice].json(component));
    }
    if (!fitting.empty() && fitting.size() < space[choice].choices.size()) {
      const nlohmann::json when{{space[choice].name, fitting}};
      return "; to try it with the others only, add \"when\": " + when.dump();
    }
  }
  return {};
}

/// The choice of whole components in the place of one between their names.
std::string whole_components(const Dimension& kind) {
  nlohmann::json choices = nlohmann::json::array();
  for (const nlohmann::json& name : kind.choices)
    choices.push_back({{"use", name}});
  const std::string component = kind.name.substr(0, kind.name.size() - kKind.size());
  return "; parameters of one component are left to the other: try whole ones, " +
         quote_text(component) + ": " + nlohmann::json{{"choice", choices}}.dump();
}

/// Both ends of each range and every choice make a document that can be trained by. A value is
/// reported where it stands, once, and not of the dimensions beside it.
void expect_documents(const Runtime& runtime, const ResolvedWorkflow& workflow,
                      const SearchSpace& space) {
  const TrialDocuments documents(runtime, workflow, space);
  ProblemsByPlace own;
  ProblemsByPlace others;  // with values between the ends, or that do not go together
  for (std::size_t tried = 0; tried < space.size(); ++tried) {
    for (const double value : ends_of(space[tried])) {
      const Point point = point_with(space, {{tried, value}});
      for (const Misfit& misfit : documents.misfits(point, tried)) {
        const Dimension& dimension = space[misfit.dimension];
        const double unfit = point[misfit.dimension];
        ProblemsByPlace& problems = misfit.dimension == tried ? own : others;
        const std::string pointer = pointer_of(workflow, dimension);
        if (problems.contains(pointer))
          continue;
        std::string text =
            "with " + dimension.json(unfit).dump() + ": " + misfit.text +
            (is_kind(dimension) ? whole_components(dimension)
                                : missing_condition(documents, space, misfit.dimension, unfit));
        std::replace(text.begin(), text.end(), '\n', ' ');
        problems.emplace(pointer, std::move(text));
      }
    }
  }
  own.merge(others);
  throw_if_any(workflow, own);
}

/// The most epochs that a trial may have; nothing where it ends by other rules.
std::optional<std::int64_t> most_epochs(const ResolvedWorkflow& workflow,
                                        const SearchSpace& space) {
  if (const auto searched = space.find("training.epochs")) {
    const Dimension& dimension = space[*searched];
    return dimension.kind == Dimension::Kind::kInteger
               ? std::optional(static_cast<std::int64_t>(dimension.high))
               : std::nullopt;
  }
  const nlohmann::json& training = workflow.resolved.at("training");
  const bool has_epochs = training.contains("epochs") && training.at("epochs").is_number_integer();
  return has_epochs && !space.find("training")
             ? std::optional(training.at("epochs").get<std::int64_t>())
             : std::nullopt;
}

/// A pruner that evaluates no trial before its last epoch saves nothing.
void note_idle_pruner(const ResolvedWorkflow& workflow, SearchSettings& settings) {
  if (!settings.pruner)
    return;
  if (const std::string why = settings.pruner->why_idle(settings.trials); !why.empty()) {
    settings.notes.push_back("search: the pruner " + quote_text(settings.pruner_name) +
                             " changes nothing: " + why +
                             "; raise \"trials\", or leave \"pruner\" out");
    return;
  }
  const std::optional<std::int64_t> epochs = most_epochs(workflow, settings.space);
  if (!epochs)
    return;
  // An epoch that is not validated has no value; those of each trial are the same.
  const auto every = settings.space.find("training.evaluate_every")
                         ? std::int64_t{1}
                         : workflow.resolved.at("training").value("evaluate_every", 1);
  std::optional<std::int64_t> first;
  for (std::int64_t trial = 0; trial < settings.trials && first.value_or(*epochs) >= *epochs;
       ++trial) {
    if (const auto step = settings.pruner->next_step(trial, 0)) {
      const std::int64_t validated = (*step + every - 1) / every * every;
      first = std::min(first.value_or(validated), validated);
    }
  }
  if (first && *first < *epochs)
    return;
  settings.notes.push_back(
      "search: the pruner " + quote_text(settings.pruner_name) + " never ends a trial early: " +
      (first ? "it first evaluates them after epoch " + std::to_string(*first)
             : "it evaluates none of them") +
      ", and trials have " + std::to_string(*epochs) + (*epochs == 1 ? " epoch" : " epochs") +
      "; let it evaluate earlier, raise \"training.epochs\", or leave \"pruner\" out");
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

/// Of a search that asks for one. What the data decides is checked by StudyEnsemble.
EnsembleSettings ensemble_in(const ResolvedWorkflow& workflow, const nlohmann::json& search) {
  constexpr const char* kPointer = "/search/ensemble";
  if (!search.at("objective").is_string()) {
    fail_in_search(workflow, kPointer,
                   "an ensemble is chosen by one objective, and this search has several");
  }
  if (search.contains("storage")) {
    fail_in_search(workflow, kPointer,
                   "an ensemble is chosen by what all trials predicted, and those of other "
                   "processes are not here; leave \"storage\" out");
  }
  const auto objective = search.at("objective").get<std::string>();
  if (Objectives::is_of_training(objective)) {
    fail_in_search(workflow, kPointer,
                   "an ensemble pools predictions, which have metrics and no " + objective +
                       "; set \"objective\" to a metric, such as log_loss or rmse");
  }
  const nlohmann::json& ensemble = search.at("ensemble");
  return {ensemble.at("size").get<std::int64_t>(), ensemble.at("initial").get<std::int64_t>(),
          ensemble.at("method") == "stacking", objective};
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
  const std::shared_ptr<Document> document = plain_document(workflow);
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
  SearchSettings settings{.space = SearchSpace::parse(search.child("space")),
                          .tuner = make_nested<Tuner>(runtime, search.child("tuner")),
                          .tuner_name = name_in(search.child("tuner")),
                          .objectives = objectives_in(search),
                          .trials = search.get<std::int64_t>("trials"),
                          .patience = search.find<std::int64_t>("patience"),
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
    settings.ensemble = ensemble_in(workflow, written);
    settings.keep = std::max(settings.keep, kCandidates);
  }
  if (written.contains("study") && !written.contains("storage")) {
    fail_in_search(
        workflow, "/search/study",
        "has no effect without \"storage\", where other processes find it; leave it out");
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
  note_idle_pruner(workflow, settings);
  return settings;
}

}  // namespace treadle::internal

namespace treadle {

std::vector<std::string> notes_on_search(const Runtime& runtime, const ResolvedWorkflow& workflow) {
  const auto settings = internal::search_of(runtime, workflow);
  return settings ? settings->notes : std::vector<std::string>();
}

nlohmann::json search_points(const Runtime& runtime, const ResolvedWorkflow& workflow) {
  const auto settings = internal::search_of(runtime, workflow);
  if (!settings)
    throw UsageError(workflow.document->file() + ": has no \"search\", which says what to try");
  nlohmann::json points = nlohmann::json::array();
  for (const Point& point :
       internal::points_without_results(settings->space, *settings->tuner, settings->initial,
                                        settings->trials, internal::streams_of_search(workflow))) {
    nlohmann::json& written = points.emplace_back(settings->space.to_json(point));
    written[internal::kPointDescription] = internal::describe_point(settings->space, point);
  }
  return points;
}

}  // namespace treadle

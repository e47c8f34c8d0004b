#include "session/study.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>

#include "load/document_components.h"
#include "load/document_slots.h"

// Trials end in another order whenever a run is repeated, so nothing here looks at what has ended
// last: a trial is suggested when the trials it may see have ended, and sees no others. A resumed
// run asks a new Study, which suggests the same trials again as their records are read.

namespace treadle::internal {
namespace {

constexpr const char* kSearch = "search";
constexpr const char* kLoss = "val_loss";
/// What all trials have in common: the data is opened and split once, and results are compared.
constexpr const char* kShared[] = {"treadle",    "name",      "seed",      "precision",
                                   "data",       "sequence",  "metrics",   "baselines",
                                   "validation", "observers", "resources", "search"};

Place place_of(const ResolvedWorkflow& workflow, const std::string& pointer) {
  return workflow.document->place_of(pointer);
}

[[noreturn]] void fail_at(const ResolvedWorkflow& workflow, const std::string& pointer,
                          const std::string& message) {
  throw DocumentError({{place_of(workflow, pointer), pointer, message}});
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

/// Without what a trial does not use: rows that only measure.
ValidationPlan plan_of_trials(ValidationPlan plan) {
  plan.refit.reset();
  for (Fold& fold : plan.folds)
    fold.test = {};
  return plan;
}

std::string state_text(TrialState state) {
  switch (state) {
    case TrialState::kRunning:
      return "running";
    case TrialState::kComplete:
      return "complete";
    case TrialState::kPruned:
      return "pruned";
    case TrialState::kFailed:
      return "failed";
  }
  return "";
}

}  // namespace

ResolvedWorkflow trial_document(const Runtime& runtime, const ResolvedWorkflow& workflow,
                                const SearchSpace& space, const Point& point) {
  nlohmann::json base = workflow.resolved;
  base.erase(kSearch);
  const std::shared_ptr<Document> document =
      Document::from_json(std::move(base), workflow.document->folder());
  // A choice before what depends on it: it replaces a whole component, perhaps.
  for (const std::size_t dimension : space.order()) {
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
    fail_at(workflow, "/search",
            "no rows validate a training that tests before it trains, so there is nothing to "
            "choose by; leave \"search\" out");
  }
  SearchSettings settings{SearchSpace::parse(search.child("space")),
                          make_nested<Tuner>(runtime, search.child("tuner")),
                          search.get<std::string>("objective"), search.get<std::int64_t>("trials"),
                          search.get<std::int64_t>("parallel")};
  expect_free(workflow, settings.space);
  expect_documents(runtime, workflow, settings.space);
  return settings;
}

Study::Study(const RunParts& run, SearchSettings settings, ValidationPlan plan)
    : run_(run),
      settings_(std::move(settings)),
      plan_(std::move(plan)),
      random_(RandomStreams(run.workflow().seed).part("search", 0)) {
  for (const Fold& fold : plan_.folds) {
    if (!fold.inner.empty() || fold.validation.empty()) {
      fail_at(run_.workflow(), "/search",
              "trials are compared by their validation rows, but the folds of this validation have "
              "none, or inner ones; use another, such as hold_out or k_fold");
    }
  }
}

bool Study::is_settled(std::int64_t trial) const {
  return trials_[static_cast<std::size_t>(trial)].state != TrialState::kRunning;
}

bool Study::suggest(Orders& orders) {
  const auto number = static_cast<std::int64_t>(trials_.size());
  if (is_exhausted_ || number == settings_.trials)
    return false;
  const std::int64_t seen = std::max<std::int64_t>(number - settings_.parallel + 1, 0);
  for (std::int64_t trial = 0; trial < seen; ++trial) {
    if (!is_settled(trial))
      return false;
  }
  std::vector<treadle::Trial> visible;
  for (std::int64_t i = 0; i < number; ++i) {
    const Trial& trial = trials_[static_cast<std::size_t>(i)];
    treadle::Trial& shown = visible.emplace_back();
    shown.number = i;
    shown.point = trial.point;
    if (i >= seen)
      continue;
    shown.state = trial.state;
    if (trial.state == TrialState::kComplete)
      shown.values = {trial.value};
  }
  const std::optional<Point> point =
      settings_.tuner->suggest(settings_.space, visible, number, random_);
  if (!point) {
    is_exhausted_ = true;
    return false;
  }
  trials_.emplace_back().point = *point;
  begin(number, orders);
  return true;
}

void Study::begin(std::int64_t number, Orders& orders) {
  Trial& trial = trials_.back();
  try {
    const auto document = std::make_shared<const ResolvedWorkflow>(
        trial_document(run_.runtime, run_.workflow(), settings_.space, trial.point));
    const auto models = static_cast<std::int64_t>(plan_.folds.size() + (plan_.refit ? 1 : 0));
    // Behind all fits of an ordinary run, whose streams stay as they are without a search.
    const FitId group("trials", models + 1, models + 2);
    trial.fits = std::make_unique<CrossValidation>(
        plan_of_trials(plan_), run_.components().training_plan(), std::vector<Baseline>(),
        group.child(std::to_string(number), number, settings_.trials), document);
    trial.names = trial.fits->names();
    trial.open = trial.names.size();
    // A fold may begin with the weights of the one before. Planned only now, it would fail the run
    // where that one fails.
    for (PlannedFit& fit : trial.fits->next().start)
      (fit.start ? trial.waiting : orders.start).push_back(std::move(fit));
  } catch (const DocumentError& error) {  // ends of ranges do, but not these values together
    trial.error = error.what();
    end(trial);
  }
}

FitPlanner::Orders Study::next() {
  Orders orders;
  orders.start = std::exchange(ready_, {});
  if (best_run_ != nullptr)
    return orders;
  while (suggest(orders))
    continue;
  const auto count = static_cast<std::int64_t>(trials_.size());
  bool all_settled = is_exhausted_ || count == settings_.trials;
  for (std::int64_t trial = 0; trial < count; ++trial)
    all_settled = all_settled && is_settled(trial);
  if (all_settled)
    begin_best(orders);
  return orders;
}

void Study::begin_best(Orders& orders) {
  for (std::size_t i = 0; i < trials_.size(); ++i) {
    const bool is_better =
        trials_[i].state == TrialState::kComplete &&
        (best_ < 0 || trials_[i].value < trials_[static_cast<std::size_t>(best_)].value);
    if (is_better)
      best_ = static_cast<std::int64_t>(i);
  }
  if (best_ < 0) {
    throw TrainingError("all " + std::to_string(trials_.size()) +
                        " trials of the search failed, the first with: " +
                        (trials_.empty() ? "no point in the space" : trials_.front().error));
  }
  best_document_ = std::make_shared<const ResolvedWorkflow>(
      trial_document(run_.runtime, run_.workflow(), settings_.space,
                     trials_[static_cast<std::size_t>(best_)].point));
  const DocumentComponents components(run_.runtime, *best_document_, run_.dataset());
  best_run_ = std::make_unique<CrossValidation>(plan_, components.training_plan(),
                                                baselines_of(run_.runtime, *best_document_),
                                                std::nullopt, best_document_);
  for (PlannedFit& fit : best_run_->next().start)
    orders.start.push_back(std::move(fit));
}

Study::Trial& Study::trial_of(const FitId& fit) {
  const std::string& path = fit.path();
  const std::size_t begin = path.find('/') + 1;
  return trials_[std::stoul(path.substr(begin, path.find('/', begin) - begin))];
}

void Study::end(Trial& trial) {
  trial.state = trial.error.empty() ? TrialState::kComplete : TrialState::kFailed;
  if (trial.error.empty()) {
    double sum = 0;
    for (const FitResult& fold : trial.fits->folds())
      sum += objective_of(fold);
    trial.value = sign_ * sum / static_cast<double>(trial.fits->folds().size());
    if (std::isnan(trial.value)) {
      trial.state = TrialState::kFailed;
      trial.error = settings_.objective + " is not a number";
    }
  }
  trial.fits.reset();
}

void Study::refuse_objective(const std::string& why) {
  has_unknown_objective_ = true;
  fail_at(run_.workflow(), "/search/objective", why);
}

double Study::objective_of(const FitResult& fit) {
  const nlohmann::json& validation = fit.result.at("validation");
  const auto number = [](const nlohmann::json& value) {
    return value.is_number() ? value.get<double>() : NAN;
  };
  if (settings_.objective == kLoss)
    return number(validation.at("loss"));
  std::string all = kLoss;
  for (const nlohmann::json& metric : validation.at("metric_list"))
    all += ", " + metric.at("name").get<std::string>();
  for (const nlohmann::json& metric : validation.at("metric_list")) {
    const auto name = metric.at("name").get<std::string>();
    if (name != settings_.objective)
      continue;
    if (!metric.contains("better")) {
      refuse_objective(quote_text(name) +
                       " is neither better when it is higher nor when it is lower; choose another "
                       "of " +
                       all);
    }
    sign_ = metric.at("better") == "higher" ? -1 : 1;
    return number(validation.at("metrics").at(name));
  }
  refuse_objective("no number of the validation is called " + quote_text(settings_.objective) +
                   "; there are " + all);
}

void Study::completed(const FitId& fit, FitResult result) {
  if (best_run_ != nullptr)
    return best_run_->completed(fit, std::move(result));
  Trial& trial = trial_of(fit);
  trial.fits->completed(fit, std::move(result));
  const auto goes_on = std::stable_partition(
      trial.waiting.begin(), trial.waiting.end(),
      [&](const PlannedFit& other) { return other.start->fit != fit.path(); });
  std::move(goes_on, trial.waiting.end(), std::back_inserter(ready_));
  trial.waiting.erase(goes_on, trial.waiting.end());
  if (--trial.open == 0)
    end(trial);
}

bool Study::failed(const FitId& fit, const std::string& why) {
  if (best_run_ != nullptr || has_unknown_objective_)
    return false;
  Trial& trial = trial_of(fit);
  if (trial.error.empty())
    trial.error = why;
  trial.open -= 1 + trial.waiting.size();
  trial.waiting.clear();
  if (trial.open == 0)
    end(trial);
  return true;
}

std::vector<std::string> Study::names() const {
  std::vector<std::string> names;
  for (const Trial& trial : trials_)
    names.insert(names.end(), trial.names.begin(), trial.names.end());
  const std::vector<std::string> last = best_run_->names();
  names.insert(names.end(), last.begin(), last.end());
  return names;
}

nlohmann::json Study::record() const {
  nlohmann::json trials = nlohmann::json::array();
  for (std::size_t i = 0; i < trials_.size(); ++i) {
    const Trial& trial = trials_[i];
    nlohmann::json one{{"number", i},
                       {"state", state_text(trial.state)},
                       {"params", settings_.space.to_json(trial.point)}};
    if (trial.state == TrialState::kComplete)
      one["value"] = sign_ * trial.value;
    if (!trial.error.empty())
      one["error"] = trial.error;
    trials.push_back(std::move(one));
  }
  return {{"objective", settings_.objective},
          {"direction", sign_ < 0 ? "maximize" : "minimize"},
          {"best_trial", best_},
          {"trials", std::move(trials)}};
}

}  // namespace treadle::internal

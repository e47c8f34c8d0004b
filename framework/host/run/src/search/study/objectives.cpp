#include "search/study/objectives.h"
#include "components/document_metrics.h"

#include <algorithm>
#include <cmath>

#include <treadle/base/json_words.h>
#include <treadle/base/near_miss.h>
#include <treadle/core/history/history.h>
#include <treadle/host/record/history_file.h>

namespace treadle::internal {
namespace {

constexpr const char* kLoss = "val_loss";
constexpr const char* kParameters = "parameter_count";
constexpr const char* kFlops = "flops";
constexpr const char* kLatency = "latency";

/// A number that trials have, before any of them has been trained.
struct KnownNumber {
  std::string name;
  std::string column;
  Direction direction;
};

std::vector<KnownNumber> numbers_of(const DocumentComponents& components) {
  std::vector<KnownNumber> known{{kLoss, kLoss, Direction::kLowerIsBetter},
                                 {kParameters, "", Direction::kLowerIsBetter},
                                 {kFlops, "", Direction::kLowerIsBetter},
                                 {kLatency, "", Direction::kLowerIsBetter}};
  // A metric that has seen no rows already names its values.
  EpochSummary row;
  for (const Metric& metric : make_metrics(components)) {
    for (MetricValue& value : metric.view().compute().values)
      row.metrics.push_back(std::move(value));
  }
  const EpochSummary written = as_in_history(row);
  for (std::size_t i = 0; i < row.metrics.size(); ++i)
    known.push_back({row.metrics[i].name, written.metrics[i].name, row.metrics[i].direction});
  return known;
}

Number scaled(const Number& number, double factor, double added) {
  return number.is_undefined() ? number : Number(factor * number + added);
}

std::vector<std::string> known_names(const std::vector<KnownNumber>& known) {
  std::vector<std::string> names;
  for (const KnownNumber& number : known)
    names.push_back(number.name);
  return names;
}

const KnownNumber& find_known(const std::vector<KnownNumber>& known, const std::string& name,
                              const std::string& pointer, const ResolvedWorkflow& workflow) {
  const auto found = std::find_if(known.begin(), known.end(),
                                  [&](const KnownNumber& number) { return number.name == name; });
  if (found == known.end()) {
    const std::vector<std::string> names = known_names(known);
    fail_in_search(workflow, pointer,
                   "no number of the validation is called " + quote_text(name) +
                       "; known: " + name_list(names) + did_you_mean(name, names));
  }
  return *found;
}

}  // namespace

bool Objectives::is_of_training(const std::string& name) {
  return name == kLoss || name == kParameters || name == kFlops || name == kLatency;
}

Objectives::Objectives(const SearchSettings& settings, const DocumentComponents& components)
    : machine_(settings.machine), need_cost_(settings.needs_cost()) {
  const std::vector<KnownNumber> known = numbers_of(components);
  const ResolvedWorkflow& workflow = components.workflow();
  for (std::size_t i = 0; i < settings.objectives.size(); ++i) {
    const std::string pointer =
        "/search/objective" + (settings.objectives.size() > 1 ? "/" + std::to_string(i) : "");
    const KnownNumber& number = find_known(known, settings.objectives[i], pointer, workflow);
    if (number.direction == Direction::kNone) {
      fail_in_search(workflow, pointer,
                     quote_text(number.name) +
                         " is neither better when it is higher nor when it is lower; choose "
                         "another of " +
                         name_list(known_names(known)));
    }
    if (number.column.empty() && settings.pruner) {
      fail_in_search(workflow, pointer,
                     quote_text(number.name) +
                         " is the same after each epoch, so trials cannot be "
                         "pruned by it; leave \"pruner\" out");
    }
    objectives_.push_back(
        {number.name, number.column, number.direction == Direction::kHigherIsBetter ? -1.0 : 1.0});
  }
  for (const ConstraintSettings& constraint : settings.constraints) {
    find_known(known, constraint.name, child_pointer("/search/constraints", constraint.name),
               workflow);
    if (constraint.min)
      bounds_.push_back({constraint.name, -1, *constraint.min});
    if (constraint.max)
      bounds_.push_back({constraint.name, 1, -*constraint.max});
  }
}

Number Objectives::number_of(const CompletedFit& fit, const std::string& name) const {
  if (name == kParameters)
    return static_cast<double>(fit.result.model_info.parameter_count);
  if (name == kFlops || name == kLatency) {
    const ForwardCostResult& cost = fit.result.forward_cost.value();
    return name == kFlops ? cost.operations
                          : machine_.seconds(cost.operations, cost.bytes, cost.calls);
  }
  const Number* const found = fit.result.validation->find(name == kLoss ? "loss" : name);
  return found != nullptr ? *found : Number(NAN);
}

Number Objectives::mean_of(const std::vector<CompletedFit>& folds, const std::string& name) const {
  std::vector<Number> values;
  for (const CompletedFit& fold : folds)
    values.push_back(number_of(fold, name));
  return moments_over_folds(values).mean;
}

std::vector<Number> Objectives::values(const std::vector<CompletedFit>& folds) const {
  std::vector<Number> values;
  for (const Goal& goal : objectives_)
    values.push_back(scaled(mean_of(folds, goal.name), goal.sign, 0));
  return values;
}

std::vector<Number> Objectives::constraints(const std::vector<CompletedFit>& folds) const {
  std::vector<Number> values;
  for (const Bound& bound : bounds_)
    values.push_back(scaled(mean_of(folds, bound.name), bound.sign, bound.limit));
  return values;
}

std::optional<Number> Objectives::value_after(const EpochSummary& epoch) const {
  const Goal& first = objectives_.front();
  if (first.column.empty())
    return std::nullopt;
  const std::optional<MetricValue> value = find_value(epoch, first.column);
  return value ? std::optional(scaled(value->value, first.sign, 0)) : std::nullopt;
}

std::vector<SearchResult::Objective> Objectives::record() const {
  std::vector<SearchResult::Objective> all;
  for (const Goal& number : objectives_)
    all.push_back({number.name, number.sign < 0});
  return all;
}

}  // namespace treadle::internal

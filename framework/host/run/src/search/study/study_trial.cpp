#include "search/study/study_trial.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <treadle/base/error.h>

namespace treadle::internal {
namespace {

/// The newest value that is not of a later epoch.
const FoldValue* value_at(const std::vector<FoldValue>& values, std::int64_t step) {
  const FoldValue* newest = nullptr;
  for (const FoldValue& value : values) {
    if (value.step <= step)
      newest = &value;
  }
  return newest;
}

}  // namespace

std::size_t TrialTraining::fold_of(const FitId& id) const {
  const auto fit = std::find_if(fits.begin(), fits.end(),
                                [&](const TrialFit& fit) { return fit.planned.id == id; });
  return static_cast<std::size_t>(fit - fits.begin());
}

bool TrialTraining::any_is(TrialFit::State state) const {
  return std::any_of(fits.begin(), fits.end(),
                     [&](const TrialFit& fit) { return fit.state == state; });
}

bool TrialTraining::have_all_reached(std::int64_t epoch) const {
  return std::all_of(fits.begin(), fits.end(), [&](const TrialFit& fit) {
    return fit.state == TrialFit::State::kEnded ||
           (!fit.values.empty() && fit.values.back().step >= epoch);
  });
}

void TrialTraining::order(FitPlanner::Orders& orders) {
  // A fold may begin with the weights of the one before. Planned before that has them, it would
  // fail the run where that one fails.
  const auto waits = [&](const TrialFit& fit) {
    return fit.planned.start && std::any_of(fits.begin(), fits.end(), [&](const TrialFit& other) {
             return other.planned.id.path() == fit.planned.start->fit &&
                    other.state != TrialFit::State::kEnded;
           });
  };
  for (TrialFit& fit : fits) {
    if (fit.state == TrialFit::State::kRunning || fit.state == TrialFit::State::kEnded ||
        waits(fit))
      continue;
    if (fit.state == TrialFit::State::kPaused)
      orders.resume.push_back(fit.planned.id.path());
    else
      orders.start.push_back(fit.planned);
    fit.state = TrialFit::State::kRunning;
  }
}

void JobStage::begin() {
  TREADLE_EXPECTS(stage_ == kEnded, "a trial has one job at a time");
  stage_ = kTraining;
}

void JobStage::advance(Stage to) {
  stage_ = std::max(stage_, to);
}

void StudyTrial::fail(const std::string& message, std::size_t fold) {
  if (error.empty() || fold < failed_fold) {
    error = message;
    failed_fold = fold;
  }
  stage.advance(JobStage::kFailing);
}

bool StudyTrial::is_due_after(std::int64_t epoch) const {
  return epoch > evaluated && next_evaluation && epoch >= *next_evaluation;
}

bool StudyTrial::report(TrialFit& fit, const EpochSummary& epoch,
                        const std::optional<Number>& objective) {
  epoch_times.add(epoch.seconds, !std::exchange(fit.slot->has_reported, true));
  FoldValue value{epoch.epoch, std::nullopt};
  if (objective && !objective->is_undefined())
    value.value = objective->value();
  // An epoch that is evaluated and was not validated has the value of the last one that was.
  if (!objective && is_due_after(epoch.epoch) && !fit.values.empty())
    value.value = fit.values.back().value;
  else if (!objective)
    return false;
  fit.values.push_back(value);
  if (value.value && training->fits.size() == 1)
    now.intermediate = mean_of_folds(training->fits);
  return value.value.has_value();
}

TrialState StudyTrial::complete(const Objectives& objectives,
                                const std::vector<std::string>& names) {
  const std::vector<CompletedFit>& folds = training->folds->folds();
  const std::vector<Number> values = objectives.values(folds);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!values[i].is_known()) {
      fail(names[i] + (values[i].is_undefined() ? " is undefined: " + values[i].why()
                                                : " is not a finite number"));
      return TrialState::kFailed;
    }
  }
  now.values.assign(values.begin(), values.end());
  now.constraints.clear();
  for (const Number& value : objectives.constraints(folds)) {
    now.constraints.push_back(std::isnan(value) ? std::numeric_limits<double>::max()
                                                : value.value());
  }
  return TrialState::kComplete;
}

JobResult StudyTrial::result(TrialState state) const {
  return {.trial = now.number,
          .state = state,
          .epoch = evaluated,
          .values = now.values,
          .constraints = now.constraints,
          .intermediate = now.intermediate,
          .error = error,
          .seconds = job_seconds};
}

void StudyTrial::end_job(const JobResult& result) {
  stage.advance(JobStage::kEnded);
  evaluated = result.epoch;
  now.state = result.state;
  now.values = result.values;
  now.constraints = result.constraints;
  now.intermediate = result.intermediate;
  error = result.error;
  ++jobs;
  seconds += result.seconds;
  timed_epochs = own_epochs(*this);
  if (result.state != TrialState::kPaused)
    training.reset();
}

std::int64_t own_epochs(const StudyTrial& trial) {
  return std::max<std::int64_t>(0, last_step(trial.now.intermediate) - last_step(trial.inherited));
}

std::vector<IntermediateValue> mean_of_folds(const std::vector<TrialFit>& fits) {
  std::vector<std::int64_t> steps;
  std::int64_t reached = std::numeric_limits<std::int64_t>::max();
  for (const TrialFit& fit : fits) {
    for (const FoldValue& value : fit.values)
      steps.push_back(value.step);
    if (fit.state != TrialFit::State::kEnded)
      reached = std::min(reached, fit.values.empty() ? 0 : fit.values.back().step);
  }
  std::sort(steps.begin(), steps.end());
  steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
  std::vector<IntermediateValue> means;
  for (const std::int64_t step : steps) {
    double sum = 0;
    double defined = 0;
    bool all_have_one = step <= reached;
    for (const TrialFit& fit : fits) {
      const FoldValue* value = value_at(fit.values, step);
      all_have_one = all_have_one && value != nullptr;
      if (value == nullptr || !value->value)
        continue;
      sum += *value->value;
      ++defined;
    }
    if (all_have_one && defined > 0)
      means.push_back({step, sum / defined});
  }
  return means;
}

std::string why_none_is_complete(const std::vector<StudyTrial>& trials, const std::string& pruner) {
  if (trials.empty())
    return "the search has no trials, as its tuner found no point in the space";
  std::size_t failed = 0;
  std::size_t cancelled = 0;
  std::string first;
  for (const StudyTrial& trial : trials) {
    if (trial.is_cancelled()) {
      ++cancelled;
    } else if (trial.now.state == TrialState::kFailed) {
      ++failed;
      if (first.empty())
        first = trial.error;
    }
  }
  const std::size_t pruned = trials.size() - failed - cancelled;
  const std::string all = std::to_string(trials.size());
  if (failed == trials.size())
    return "all " + all + " trials of the search failed, the first with: " + first;
  std::string text = "no trial of the search was trained to its end: of " + all + " trials " +
                     std::to_string(pruned) + " were pruned, " + std::to_string(cancelled) +
                     " were cancelled and " + std::to_string(failed) + " failed";
  if (pruned > 0)
    text += "; give " + pruner + " bounds that good trials keep, or leave it out";
  return first.empty() ? text : text + ". The first that failed: " + first;
}

}  // namespace treadle::internal

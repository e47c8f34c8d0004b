#include "search/study/best_trials.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <treadle/search/trial_order.h>

namespace treadle::internal {

bool is_complete(const Trial& trial) {
  return trial.state == TrialState::kComplete;
}

std::tuple<double, double, std::int64_t> rank_of(const Trial& trial) {
  return {violation(trial), trial.values.front(), trial.number};
}

std::optional<std::int64_t> best_complete(const std::vector<Trial>& trials) {
  const Trial* best = nullptr;
  for (const Trial& trial : trials) {
    if (is_complete(trial) && (best == nullptr || rank_of(trial) < rank_of(*best)))
      best = &trial;
  }
  return best != nullptr ? std::optional(best->number) : std::nullopt;
}

std::int64_t trials_since_best(const std::vector<Trial>& trials) {
  std::vector<const Trial*> complete;
  std::int64_t since = 0;
  for (const Trial& trial : trials) {
    const bool has_ended = is_complete(trial) || trial.state == TrialState::kPruned ||
                           trial.state == TrialState::kFailed;
    if (!has_ended)
      continue;
    const auto is_as_good = [&](const Trial* earlier) {
      const double own = violation(trial);
      const double its = violation(*earlier);
      return its < own || (its == own && (earlier->values == trial.values ||
                                          dominates(earlier->values, trial.values)));
    };
    const bool is_best =
        is_complete(trial) && std::none_of(complete.begin(), complete.end(), is_as_good);
    since = is_best ? 0 : since + 1;
    if (is_complete(trial))
      complete.push_back(&trial);
  }
  return since;
}

std::optional<std::int64_t> best_paused(const std::vector<Trial>& trials) {
  const Trial* best = nullptr;
  const auto key = [](const Trial& trial) {
    const IntermediateValue& last = trial.intermediate.back();
    return std::tuple(-last.step, std::isnan(last.value) ? INFINITY : last.value);
  };
  for (const Trial& trial : trials) {
    const bool is_paused = trial.state == TrialState::kPaused && !trial.intermediate.empty();
    if (is_paused && (best == nullptr || key(trial) < key(*best)))
      best = &trial;
  }
  return best != nullptr ? std::optional(best->number) : std::nullopt;
}

std::optional<double> newest_value(const Trial& trial) {
  if (is_complete(trial))
    return trial.values.front();
  const bool may_resume = trial.state == TrialState::kPaused || trial.state == TrialState::kRunning;
  if (!may_resume || trial.intermediate.empty() || std::isnan(trial.intermediate.back().value))
    return std::nullopt;
  return trial.intermediate.back().value;
}

std::vector<std::int64_t> pareto_front(const std::vector<Trial>& trials) {
  const auto counts = [](const Trial& trial) {
    return is_complete(trial) && violation(trial) <= 0;
  };
  std::vector<std::int64_t> front;
  for (const Trial& trial : trials) {
    if (counts(trial) && std::none_of(trials.begin(), trials.end(), [&](const Trial& other) {
          return counts(other) && dominates(other.values, trial.values);
        }))
      front.push_back(trial.number);
  }
  return front;
}

}  // namespace treadle::internal

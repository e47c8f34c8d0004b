#include "trial_values.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace treadle::pruners {

std::optional<double> value_at(const Trial& trial, std::int64_t epoch) {
  const auto at = std::lower_bound(
      trial.intermediate.begin(), trial.intermediate.end(), epoch,
      [](const IntermediateValue& value, std::int64_t step) { return value.step < step; });
  if (at == trial.intermediate.end() || at->step != epoch)
    return std::nullopt;
  return at->value;
}

bool is_paused_at(const Trial& trial, std::int64_t epoch) {
  return trial.state == TrialState::kPaused && !trial.intermediate.empty() &&
         trial.intermediate.back().step == epoch;
}

bool is_better(double a, double b) {
  return std::isnan(b) ? !std::isnan(a) : a < b;
}

double best_of(std::span<const IntermediateValue> values) {
  double best = std::numeric_limits<double>::quiet_NaN();
  for (const IntermediateValue& one : values)
    best = is_better(one.value, best) ? one.value : best;
  return best;
}

std::vector<const Trial*> ranked_at(std::vector<const Trial*> trials, std::int64_t epoch) {
  std::erase_if(trials, [&](const Trial* trial) { return !value_at(*trial, epoch); });
  std::stable_sort(trials.begin(), trials.end(), [&](const Trial* a, const Trial* b) {
    return is_better(*value_at(*a, epoch), *value_at(*b, epoch));
  });
  return trials;
}

std::vector<const Trial*> pointers_to(std::span<const Trial> trials) {
  std::vector<const Trial*> pointers;
  pointers.reserve(trials.size());
  for (const Trial& trial : trials)
    pointers.push_back(&trial);
  return pointers;
}

}  // namespace treadle::pruners

#include "search/study/study_trial.h"

#include <algorithm>
#include <limits>

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

bool has_running_fit(const StudyTrial& trial) {
  return trial.training &&
         std::any_of(trial.training->fits.begin(), trial.training->fits.end(),
                     [](const TrialFit& fit) { return fit.state == TrialFit::State::kRunning; });
}

std::int64_t own_epochs(const StudyTrial& trial) {
  const auto last = [](const std::vector<IntermediateValue>& values) {
    return values.empty() ? 0 : values.back().step;
  };
  return std::max<std::int64_t>(0, last(trial.now.intermediate) - last(trial.inherited));
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

}  // namespace treadle::internal

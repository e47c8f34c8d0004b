#include "percentile.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "trial_values.h"

namespace treadle::pruners {
namespace {

/// Of at least one value, none of them NaN: between two values on a straight line, as NumPy does.
double percentile_of(std::vector<double> values, double percentile) {
  const double position = percentile / 100 * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::ptrdiff_t>(position);
  std::nth_element(values.begin(), values.begin() + below, values.end());
  const double low = values[static_cast<std::size_t>(below)];
  const double share = position - static_cast<double>(below);
  if (share == 0)
    return low;
  const double high = *std::min_element(values.begin() + below + 1, values.end());
  // No line leads from an infinity to itself.
  return low == high ? low : low + share * (high - low);
}

}  // namespace

Percentile::Percentile(const Config& config)
    : Percentile(config, config.get<double>("percentile")) {}

Percentile::Percentile(const Config& config, double percentile)
    : percentile_(percentile),
      n_startup_trials_(config.get<std::int64_t>("n_startup_trials")),
      n_min_trials_(config.get<std::int64_t>("n_min_trials")),
      steps_(config) {}

std::optional<std::int64_t> Percentile::do_next_step(std::int64_t, std::int64_t after) const {
  return steps_.next(after);
}

PrunerVerdict Percentile::do_judge(const Trial& trial, const StudyView& study) const {
  const std::int64_t step = trial.intermediate.back().step;
  std::int64_t complete = 0;
  std::int64_t reached = 0;
  std::vector<double> values;
  for (const Trial& other : study.trials) {
    if (other.state != TrialState::kComplete)
      continue;
    ++complete;
    if (const std::optional<double> value = value_at(other, step)) {
      ++reached;
      if (!std::isnan(*value))
        values.push_back(*value);
    }
  }
  if (complete == 0 || complete < n_startup_trials_)
    return PrunerVerdict::kContinue;
  const double best = best_of(trial.intermediate);
  if (std::isnan(best))
    return PrunerVerdict::kPrune;
  if (reached < n_min_trials_ || values.empty())
    return PrunerVerdict::kContinue;
  return best > percentile_of(std::move(values), percentile_) ? PrunerVerdict::kPrune
                                                              : PrunerVerdict::kContinue;
}

}  // namespace treadle::pruners

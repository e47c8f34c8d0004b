#include "search/budget/time_budget.h"

#include <algorithm>
#include <cmath>

#include "search/study/best_trials.h"

namespace treadle::internal {
namespace {

/// Of trainings that all exceed a time budget, those that cost so little more than the cheapest are
/// as good as it.
constexpr double kLittleMore = 1.25;

}  // namespace

double TimeBudget::left_for_trials(double left, const std::vector<Trial>& shown) {
  if (times_.have_only_first_epochs(workers_))
    return left;
  const auto end_of = times_.ends(members_, workers_);
  best_ = best_within(left, shown, end_of);
  if (!best_) {
    // Nothing can be trained in time any more: the sooner the end begins, the less it is late.
    double cheapest = HUGE_VAL;
    for (const Trial& trial : shown) {
      if (may_be_best(trial))
        cheapest = std::min(cheapest, end_of(trial.number));
    }
    best_ = best_within(kLittleMore * cheapest, shown, end_of);
  }
  return best_ ? left - end_of(*best_) : left;
}

/// A trial on its way has neither constraints nor more than one objective.
bool TimeBudget::may_be_best(const Trial& trial) const {
  return needs_complete_ ? is_complete(trial) : newest_value(trial).has_value();
}

/// The best of the trials whose last training takes no more than so many seconds, and of the one
/// that this was before. Where that one is the best, and takes more by now, the search is to end.
std::optional<std::int64_t> TimeBudget::best_within(
    double seconds, const std::vector<Trial>& shown,
    const std::function<double(std::int64_t)>& end_of) const {
  const Trial* best = nullptr;
  for (const Trial& trial : shown) {
    if (!may_be_best(trial))
      continue;
    if (trial.number != best_ && end_of(trial.number) > seconds)
      continue;
    const bool is_better =
        best == nullptr || (needs_complete_ ? rank_of(trial) < rank_of(*best)
                                            : newest_value(trial) < newest_value(*best));
    if (is_better)
      best = &trial;
  }
  return best != nullptr ? std::optional(best->number) : std::nullopt;
}

}  // namespace treadle::internal

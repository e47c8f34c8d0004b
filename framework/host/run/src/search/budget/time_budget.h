#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include <treadle/search/tuner.h>

#include "search/budget/training_times.h"

namespace treadle::internal {

/// How long the trials of a search with a time budget may still be trained, so that the last
/// training ends with the budget. It trains the best trial for which there is time, not one that is
/// found too late. To be called often: a trial that is better and takes longer leaves less time.
class TimeBudget {
 public:
  /// `needs_complete`: whether only complete trials can be the best. Borrows `times`.
  TimeBudget(const TrainingTimes& times, std::int64_t members, int workers, bool needs_complete)
      : times_(times), members_(members), workers_(workers), needs_complete_(needs_complete) {}

  /// Of so many seconds that are left of the budget those for trials; none or fewer: the search is
  /// to end.
  double left_for_trials(double left, const std::vector<Trial>& shown);
  /// The one to train last if the search ends now; nothing: no trial has a value and a time yet.
  std::optional<std::int64_t> best_trial() const { return best_; }

 private:
  bool may_be_best(const Trial& trial) const;
  std::optional<std::int64_t> best_within(double seconds, const std::vector<Trial>& shown,
                                          const std::function<double(std::int64_t)>& end_of) const;

  const TrainingTimes& times_;
  const std::int64_t members_;  // of an ensemble
  const int workers_;
  const bool needs_complete_;
  std::optional<std::int64_t> best_;
};

}  // namespace treadle::internal

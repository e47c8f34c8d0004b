#pragma once

#include <cstdint>
#include <optional>

#include <treadle/search/pruner.h>

#include "interval_steps.h"

namespace treadle::pruners {

/// `percentile`: prunes a trial whose best value so far is worse than the given percentile of the
/// complete trials' values at the same epoch (V. Bahri's rule in D. Golovin et al., "Google
/// Vizier", 2017, section 3.1, as Optuna has it: optuna/pruners/_percentile.py).
///
/// Nothing is pruned before `n_startup_trials` trials are complete, nor at an epoch that fewer than
/// `n_min_trials` of them have reached. Values of theirs that are NaN do not count. A trial without
/// any value but NaN is pruned.
class Percentile : public Pruner {
 public:
  explicit Percentile(const Config& config);

 protected:
  Percentile(const Config& config, double percentile);

 private:
  std::optional<std::int64_t> do_next_step(std::int64_t trial, std::int64_t after) const override;
  PrunerVerdict do_judge(const Trial& trial, const StudyView& study) const override;

  double percentile_;
  std::int64_t n_startup_trials_;
  std::int64_t n_min_trials_;
  IntervalSteps steps_;
};

/// `median`: the percentile 50.
class Median final : public Percentile {
 public:
  explicit Median(const Config& config) : Percentile(config, 50) {}
};

}  // namespace treadle::pruners

#pragma once

#include <cstdint>
#include <vector>

#include "brackets.h"

namespace treadle::pruners {

/// `hyperband`: successive halving with brackets of many trials that are compared early and of few
/// that are compared late (L. Li et al., "Hyperband: a novel bandit-based approach to
/// hyperparameter optimization", 2018, algorithm 1).
///
/// With R = max_resource, η = reduction_factor and s_max = floor(log_η(R / min_resource)), the
/// brackets s = s_max, …, 0 have n_s = ceil((s_max + 1) / (s + 1) · η^s) trials each and rungs at
/// R η^-s, R η^-(s - 1), …, R / η epochs, rounded down; then the brackets begin anew. A trial
/// belongs to a bracket by its number.
class Hyperband final : public Brackets {
 public:
  explicit Hyperband(const Config& config);

 private:
  /// One of a round, its first trial counted from the round's.
  struct Kind {
    Bracket bracket;
    Rungs rungs;
  };

  Bracket bracket_of(std::int64_t trial, std::int64_t max_trials) const override;
  const Rungs& rungs_of(std::int64_t trial) const override { return kind_of(trial).rungs; }
  const Kind& kind_of(std::int64_t trial) const;

  std::vector<Kind> round_;
  std::int64_t trials_in_round_ = 0;
};

}  // namespace treadle::pruners

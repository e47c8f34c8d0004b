#pragma once

#include <cstdint>

#include <treadle/base/config.h>

namespace treadle::pruners {

/// The epochs at which a pruner without rungs judges: the first is `n_warmup_steps` + 1, and then
/// each `interval_steps`. Those of Optuna, which counts from 0.
class IntervalSteps {
 public:
  explicit IntervalSteps(const Config& config);

  /// The first of them behind `after`.
  std::int64_t next(std::int64_t after) const;

 private:
  std::int64_t first_;
  std::int64_t interval_;
};

}  // namespace treadle::pruners

#pragma once

#include <cstdint>
#include <optional>

#include <treadle/search/pruner.h>

#include "rungs.h"

namespace treadle::pruners {

/// `asha`: asynchronous successive halving (L. Li et al., "A system for massively parallel
/// hyperparameter tuning", 2020, algorithm 2), which pauses trials and promotes them.
///
/// Every trial pauses at every rung: min_resource * reduction_factor^(min_early_stopping_rate + k)
/// epochs for k = 0, 1, …. From the top rung down, of the n trials that have reached a rung the
/// best floor(n / reduction_factor) are promoted, one a job; where none is left to promote, another
/// trial starts. So no job waits for others.
class Asha final : public Pruner {
 public:
  explicit Asha(const Config& config);

 private:
  std::optional<std::int64_t> do_next_step(std::int64_t trial, std::int64_t after) const override;
  PrunerVerdict do_judge(const Trial& trial, const StudyView& study) const override;
  NextJob do_next_job(const StudyView& study) const override;

  std::int64_t reduction_factor_;
  Rungs rungs_;
};

}  // namespace treadle::pruners

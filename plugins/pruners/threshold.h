#pragma once

#include <cstdint>
#include <optional>

#include <treadle/search/pruner.h>

#include "interval_steps.h"

namespace treadle::pruners {

/// `threshold`: prunes a trial whose value is below `lower`, above `upper` or NaN. The bounds are
/// in the objective's own terms, also where it is maximized. Without bounds NaN alone prunes.
class Threshold final : public Pruner {
 public:
  explicit Threshold(const Config& config);

 private:
  std::optional<std::int64_t> do_next_step(std::int64_t trial, std::int64_t after) const override;
  PrunerVerdict do_judge(const Trial& trial, const StudyView& study) const override;

  std::optional<double> lower_;
  std::optional<double> upper_;
  IntervalSteps steps_;
};

}  // namespace treadle::pruners

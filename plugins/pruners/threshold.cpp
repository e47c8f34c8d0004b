#include "threshold.h"

#include <cmath>

namespace treadle::pruners {

Threshold::Threshold(const Config& config)
    : lower_(config.find<double>("lower")), upper_(config.find<double>("upper")), steps_(config) {
  if (lower_ && upper_ && *lower_ > *upper_)
    config.fail("lower", "must be at most \"upper\"");
}

std::optional<std::int64_t> Threshold::do_next_step(std::int64_t, std::int64_t after) const {
  return steps_.next(after);
}

PrunerVerdict Threshold::do_judge(const Trial& trial, const StudyView& study) const {
  const double minimized = trial.intermediate.back().value;
  const double value = study.maximizes ? -minimized : minimized;
  const bool is_outside =
      std::isnan(value) || (lower_ && value < *lower_) || (upper_ && value > *upper_);
  return is_outside ? PrunerVerdict::kPrune : PrunerVerdict::kContinue;
}

}  // namespace treadle::pruners

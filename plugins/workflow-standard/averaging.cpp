#include "averaging.h"

#include <algorithm>

namespace treadle {

std::optional<Averaging> Averaging::configured_by(const Config& config) {
  const bool exponential = config.has("ema");
  const bool equal = config.has("swa");
  if (exponential && equal) {
    config.fail("swa",
                "a training has one average of its weights, and \"ema\" is given too; leave one of "
                "them out");
  }
  if (exponential) {
    const Config ema = config.child("ema");
    return Averaging{ema.get<double>("decay"), ema.get<Duration>("start")};
  }
  if (equal) {
    const Config swa = config.child("swa");
    return Averaging{std::nullopt, swa.get<Duration>("start"), swa.get<Duration>("every")};
  }
  return std::nullopt;
}

engine::AveragingPlan Averaging::plan(std::int64_t steps_per_epoch,
                                      std::int64_t total_steps) const {
  return {start.steps(steps_per_epoch, total_steps),
          std::max<std::int64_t>(1, every.steps(steps_per_epoch, total_steps)), decay};
}

}  // namespace treadle

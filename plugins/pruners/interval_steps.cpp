#include "interval_steps.h"

namespace treadle::pruners {

IntervalSteps::IntervalSteps(const Config& config)
    : first_(config.get<std::int64_t>("n_warmup_steps") + 1),
      interval_(config.get<std::int64_t>("interval_steps")) {}

std::int64_t IntervalSteps::next(std::int64_t after) const {
  if (after < first_)
    return first_;
  return after + interval_ - (after - first_) % interval_;
}

}  // namespace treadle::pruners

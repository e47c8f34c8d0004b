#include "successive_halving.h"

namespace treadle::pruners {

SuccessiveHalving::SuccessiveHalving(const Config& config)
    : Brackets(config.get<std::int64_t>("reduction_factor")),
      bracket_size_(config.find<std::int64_t>("bracket_size")),
      rungs_(geometric_rungs(config)) {}

Bracket SuccessiveHalving::bracket_of(std::int64_t trial, std::int64_t max_trials) const {
  const std::int64_t size = bracket_size_.value_or(max_trials);
  return {trial - trial % size, size};
}

}  // namespace treadle::pruners

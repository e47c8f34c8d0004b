#include "hyperband.h"

#include <algorithm>
#include <string>

namespace treadle::pruners {

Hyperband::Hyperband(const Config& config)
    : Brackets(config.get<std::int64_t>("reduction_factor")) {
  const auto least = config.get<std::int64_t>("min_resource");
  const auto most = config.get<std::int64_t>("max_resource");
  const auto factor = config.get<std::int64_t>("reduction_factor");
  if (most < least) {
    config.fail("max_resource", "must be at least \"min_resource\", " + std::to_string(least) +
                                    ", got " + std::to_string(most));
  }
  std::vector<std::int64_t> powers{1};  // to s_max
  while (powers.back() <= most / least / factor)
    powers.push_back(powers.back() * factor);
  const auto kinds = static_cast<std::int64_t>(powers.size());
  for (std::int64_t s = kinds - 1; s >= 0; --s) {
    Kind& kind = round_.emplace_back();
    const std::int64_t trials = (kinds * powers[static_cast<std::size_t>(s)] + s) / (s + 1);
    kind.bracket = {trials_in_round_, trials};
    trials_in_round_ += trials;
    for (std::int64_t power = s; power > 0; --power)
      kind.rungs.push_back(most / powers[static_cast<std::size_t>(power)]);
  }
}

const Hyperband::Kind& Hyperband::kind_of(std::int64_t trial) const {
  const std::int64_t place = trial % trials_in_round_;
  return *std::prev(std::upper_bound(
      round_.begin(), round_.end(), place,
      [](std::int64_t number, const Kind& kind) { return number < kind.bracket.first; }));
}

Bracket Hyperband::bracket_of(std::int64_t trial, std::int64_t) const {
  const Bracket& bracket = kind_of(trial).bracket;
  return {trial - trial % trials_in_round_ + bracket.first, bracket.size};
}

}  // namespace treadle::pruners

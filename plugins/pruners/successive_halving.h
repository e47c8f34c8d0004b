#pragma once

#include <cstdint>
#include <optional>

#include "brackets.h"

namespace treadle::pruners {

/// `successive_halving`: brackets of `bracket_size` trials, or one of all trials of the study, with
/// the rungs min_resource * reduction_factor^k.
class SuccessiveHalving final : public Brackets {
 public:
  explicit SuccessiveHalving(const Config& config);

 private:
  Bracket bracket_of(std::int64_t trial, std::int64_t max_trials) const override;
  const Rungs& rungs_of(std::int64_t) const override { return rungs_; }

  std::optional<std::int64_t> bracket_size_;
  Rungs rungs_;
};

}  // namespace treadle::pruners

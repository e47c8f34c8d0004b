#pragma once

#include <optional>

#include <treadle/base/config.h>
#include <treadle/core/validation/cross_validator.h>

#include "split_parameters.h"

namespace treadle::validation {

/// `consecutive`: stretches of the data in time, given by the numbers of their steps: the first
/// trains, the next validates, the one after it tests; what is left is not used.
///
/// Steps are those of the data, not of samples: a sample is in the stretch that has all of its
/// target, and its inputs may lie before it. So the windows of a stretch of n rows that a model
/// predicts `horizon` rows of are n - horizon + 1, as in the protocol of the ETT data (H. Zhou et
/// al., "Informer", 2021), where rows before the stretch serve as inputs.
class Consecutive final : public CrossValidator {
 public:
  explicit Consecutive(const Config& config);
  ~Consecutive() override;

 private:
  ValidationPlan do_plan(const SplitRequest& request) const override;

  std::optional<Size> training_;
  Size validation_;
  std::optional<Size> test_;
};

}  // namespace treadle::validation

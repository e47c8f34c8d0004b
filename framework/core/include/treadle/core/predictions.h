#pragma once

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/core/data_spec.h>

namespace treadle {

/// Model outputs for one target, as users read them.
struct Prediction {
  TargetKind kind = TargetKind::kNumbers;
  /// Classes, distributions: probabilities [B, positions..., C] that sum to 1 (C >= 2, also for two
  /// classes with one logit). Labels: a probability for each, [B, positions..., C]. Numbers:
  /// [B, positions..., width], in the data's units once transforms have been inverted.
  at::Tensor values;

  /// Further numbers about the same target, shaped and scaled like `values`: a quantile.
  struct Extra {
    std::string name;  ///< "q0.9"
    at::Tensor values;
  };
  std::vector<Extra> extras = {};
};

/// One per target of the data, in their order.
using Predictions = std::vector<Prediction>;

}  // namespace treadle

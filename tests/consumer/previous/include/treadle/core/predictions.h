#pragma once

#include <ATen/core/Tensor.h>

#include <treadle/core/data_spec.h>

namespace treadle {

/// What a model says about some rows, in terms people use.
struct Predictions {
  TargetKind kind = TargetKind::kNone;
  /// Classes: probabilities [B, C] that sum to 1 (C >= 2, also for two classes with one logit).
  /// Numbers: [B, width], in the data's units once transforms have been inverted.
  at::Tensor values;
};

}  // namespace treadle

#pragma once

#include <limits>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/core/data/target_spec.h>

namespace treadle {

/// Model outputs for one target, as users read them.
struct Prediction {
  TargetKind kind = TargetKind::kNumbers;
  /// Classes, distributions: probabilities [B, positions..., C] that sum to 1 (C >= 2, also for two
  /// classes with one logit). Labels: a probability for each, [B, positions..., C]. Numbers:
  /// [B, positions..., width], in the data's units once transforms have been inverted.
  at::Tensor values;
  /// The outputs that probabilities were made of, before rounding makes them 0 or 1: logits
  /// [B, positions..., C], for two classes perhaps one, that of the second. What metrics rank by.
  /// Undefined where values have no logits.
  at::Tensor logits = {};

  /// Further numbers about the same target, shaped and scaled like `values`: a quantile.
  struct Extra {
    std::string name;  ///< "q0.9"
    at::Tensor values;
    /// Of a quantile, in (0, 1); NaN for anything else.
    double level = std::numeric_limits<double>::quiet_NaN();
  };
  std::vector<Extra> extras = {};

  /// Draws from the predicted distribution, [samples, B, positions..., width], scaled like
  /// `values`: the first of each row and position belong together, and so on. Undefined where none
  /// were asked for.
  at::Tensor samples = {};
};

/// One per target of the data, in their order.
using Predictions = std::vector<Prediction>;

}  // namespace treadle

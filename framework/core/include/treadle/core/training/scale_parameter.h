#pragma once

#include <ATen/core/Tensor.h>

namespace treadle {

/// The deviation that an output of Estimate::kScale stands for. Losses compute it; models that
/// scale outputs back use both functions.
///
///     scale_of(x) = softplus(x) + kLeastScale
///
/// Element by element, differentiable, on any device; any thread.
at::Tensor scale_of(const at::Tensor& output);

/// The output that stands for `scale`: the inverse of scale_of(). Scales below kLeastScale count as
/// kLeastScale, with a gradient of 0.
at::Tensor output_for_scale(const at::Tensor& scale);

inline constexpr double kLeastScale = 1e-6;

}  // namespace treadle

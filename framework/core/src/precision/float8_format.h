#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/full_like.h>

#include <treadle/core/precision/float8_scales.h>
#include <treadle/tensor/float8.h>

namespace treadle {

/// "Hybrid": gradients need exponents more than mantissas.
///
/// Source: Micikevicius et al., "FP8 Formats for Deep Learning" (2022), section 3.
inline const NarrowFloat& float8_format(Float8Operand operand) {
  return operand == Float8Operand::kGradient ? kE5M2 : kE4M3;
}

/// The scale of values whose largest magnitude is `largest`, float32. A magnitude below 1e-12
/// counts as that, as in torchao: scales are finite.
inline at::Tensor float8_scale(Float8Operand operand, const at::Tensor& largest) {
  constexpr double kLeast = 1e-12;
  return at::full_like(largest, float8_format(operand).largest).div_(largest.clamp_min(kLeast));
}

}  // namespace treadle

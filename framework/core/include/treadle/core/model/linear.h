#pragma once

#include <ATen/core/Tensor.h>

#include <treadle/core/precision/precision.h>

namespace treadle {

/// x Wᵀ + b as at::linear() computes it, and in float8 where the document's precision is one of the
/// fp8 recipes: a layer or model takes part in them by calling this function. `input`: [..., in],
/// `weight`: [out, in], `bias`: [out], or undefined.
///
/// In "fp8-delayed" the weight is a parameter of the model itself. Others are scaled by the values
/// at hand.
at::Tensor linear_in_precision(const at::Tensor& input, const at::Tensor& weight,
                               const at::Tensor& bias);

/// The same in float8, whatever the precision is. With the rounding Q4 to E4M3 and Q5 to E5M2, and
/// the gradient dy of the result:
///
///     y = Q4(x) Q4(W)ᵀ + b,   dx = Q5(dy) Q4(W),   dW = Q5(dy)ᵀ Q4(x),   db = Σ dy
///
/// Scaled numbers are rounded, multiplied and added in float32 (float64 for weights of float64),
/// and the sum is divided by both scales. Row by row, each product rounds its operands along what
/// it sums over, so a weight has other scales in y than in dx. Gradients are straight-through, as
/// if rounding had the slope 1. `scaling`: kTensorwise or kRowwise.
///
/// Source: torchao.float8, whose products are those of `torch._scaled_mm`; widths that are no
/// multiples of 16, which it leaves out, are rounded like others.
at::Tensor float8_linear(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                         Float8Scaling scaling);

}  // namespace treadle

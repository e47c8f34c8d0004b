#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

/// Maps of numbers z to distributions p, along one dimension, with true gradients. Each is computed
/// in float32 where z has 16 bits, and has the dtype of z.
///
/// A gradient is that of a differentiable expression with the value p, so that autocast and any
/// device have it. It has no second derivative.
namespace treadle::softmax {

/// The point of the simplex nearest to z: p_i = max(0, z_i - tau), sum p = 1. Martins & Astudillo,
/// "From Softmax to Sparsemax" (2016). dz_i = g_i - mean of g over the support S within S, else 0.
at::Tensor sparsemax(const at::Tensor& z, std::int64_t dim);

/// p_i = max(0, (alpha - 1) z_i - tau)^(1 / (alpha - 1)), sum p = 1: softmax for alpha = 1,
/// sparsemax for 2. Peters, Niculae & Martins, "Sparse Sequence-to-Sequence Models" (2019). With
/// s_i = p_i^(2 - alpha) on the support, else 0: dz = s (g - sum(s g) / sum(s)).
///
/// By a sort for 1.5 and 2, by bisection for others. Expects alpha >= 1.
at::Tensor entmax(const at::Tensor& z, double alpha, std::int64_t dim);

/// entmax() with alpha > 1, always by bisection: what the sort is compared with.
at::Tensor entmax_by_bisection(const at::Tensor& z, double alpha, std::int64_t dim);

/// `z` in at least 32 bits.
at::Tensor widened(const at::Tensor& z);

}  // namespace treadle::softmax

#pragma once

#include <ATen/core/Tensor.h>

namespace treadle::optimizers {

/// The nearest semi-orthogonal matrix, roughly, of each matrix of `x` [n, rows, columns]: singular
/// values between 0.7 and 1.2 where they were not far below the largest.
///
///     X <- X / (|X| + 1e-7)
///     five times: A <- X X^T;  X <- a X + (b A + c A^2) X,   (a, b, c) = (3.4445, -4.775, 2.0315)
///
/// |X| is the Frobenius norm. Where rows > columns it works with X^T, so that A is the smaller
/// product; of wide matrices the five factors of X are found from A alone. In x's dtype, by matrix
/// products alone: batched over n on a device, on a CPU divided
/// among the workers of the caller's oneTBB arena. Source: K. Jordan et al.,
/// "Muon" (2024).
at::Tensor newton_schulz(const at::Tensor& x);

}  // namespace treadle::optimizers

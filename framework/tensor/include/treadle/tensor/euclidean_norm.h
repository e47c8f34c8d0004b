#pragma once

#include <ATen/core/Tensor.h>

namespace treadle {

/// The square root of the sum of the squares of all elements; 0 of none.
///
/// Squares are summed in float64, in blocks of fixed size whose sums are added in order: the same
/// bits for any number of threads, and of float32 numbers neither an overflow (squares of 1e30) nor
/// a 0 (of 1e-30), as with the scaled sums of BLAS nrm2. Of float64 numbers whose squares leave its
/// range the sum is taken of scaled ones. NaN or infinite where an element is.
///
/// Expects a dense tensor of float32 or float64 on a CPU.
double euclidean_norm(const at::Tensor& values);

}  // namespace treadle

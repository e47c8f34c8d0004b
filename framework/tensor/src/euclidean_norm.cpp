#include <treadle/tensor/euclidean_norm.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include <ATen/Parallel.h>

#include <treadle/base/error.h>

#include "sum_of_squares.h"

namespace treadle {
namespace {

constexpr std::int64_t kBlock = 1 << 15;
constexpr std::int64_t kBlocksAtOnce = 8;  // fewer do not pay for a thread

/// Several sums beside one another, so that the compiler may use vectors without changing an order.
double sum_of_scaled_squares(const double* values, std::int64_t count, double factor) {
  constexpr std::int64_t kSums = 8;
  std::array<double, kSums> sums{};
  std::int64_t i = 0;
  for (; i + kSums <= count; i += kSums) {
    for (std::int64_t k = 0; k < kSums; ++k) {
      const double value = values[i + k] * factor;
      sums[static_cast<std::size_t>(k)] += value * value;
    }
  }
  double sum = 0;
  for (; i < count; ++i) {
    const double value = values[i] * factor;
    sum += value * value;
  }
  for (const double one : sums)
    sum += one;
  return sum;
}

/// `of_block(first, count)`: the sum of the squares of a block.
template <typename Sum>
double sum_of_blocks(std::int64_t count, const Sum& of_block) {
  if (count <= kBlock)
    return of_block(0, count);
  const std::int64_t blocks = (count + kBlock - 1) / kBlock;
  std::vector<double> sums(static_cast<std::size_t>(blocks));
  at::parallel_for(0, blocks, kBlocksAtOnce, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t block = begin; block < end; ++block) {
      const std::int64_t first = block * kBlock;
      sums[static_cast<std::size_t>(block)] = of_block(first, std::min(kBlock, count - first));
    }
  });
  double sum = 0;
  for (const double one : sums)
    sum += one;
  return sum;
}

double norm_of(const double* values, std::int64_t count, double factor) {
  const double sum = sum_of_blocks(count, [&](std::int64_t first, std::int64_t some) {
    return sum_of_scaled_squares(values + first, some, factor);
  });
  return std::sqrt(sum) / factor;
}

double norm_of_floats(const float* values, std::int64_t count) {
  return std::sqrt(sum_of_blocks(count, [&](std::int64_t first, std::int64_t some) {
    return sum_of_squares(values + first, some);
  }));
}

double norm_of_doubles(const double* values, std::int64_t count) {
  const double norm = norm_of(values, count, 1);
  // Squares between these bounds are neither infinite nor rounded to few digits.
  constexpr double kSmall = 1e-140;
  if (std::isfinite(norm) && norm > kSmall)
    return norm;
  double largest = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    if (!std::isfinite(values[i]))
      return norm;
    largest = std::max(largest, std::abs(values[i]));
  }
  if (largest == 0)
    return 0;
  // A power of two: the scaled values are exact.
  const double factor = std::ldexp(1.0, std::clamp(-std::ilogb(largest), -1000, 1000));
  return norm_of(values, count, factor);
}

}  // namespace

double euclidean_norm(const at::Tensor& values) {
  TREADLE_EXPECTS(values.is_cpu() &&
                      (values.scalar_type() == at::kFloat || values.scalar_type() == at::kDouble),
                  "a norm is of float32 or float64 numbers on a CPU");
  const at::Tensor dense = values.contiguous();
  return dense.scalar_type() == at::kFloat
             ? norm_of_floats(dense.data_ptr<float>(), dense.numel())
             : norm_of_doubles(dense.data_ptr<double>(), dense.numel());
}

}  // namespace treadle

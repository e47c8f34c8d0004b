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

namespace treadle {
namespace {

constexpr std::int64_t kBlock = 1 << 15;
constexpr std::int64_t kBlocksAtOnce = 8;  // fewer do not pay for a thread

/// Several sums beside one another, so that the compiler may use vectors without changing an order.
template <typename T>
double sum_of_squares(const T* values, std::int64_t count, double factor) {
  constexpr std::int64_t kSums = 8;
  std::array<double, kSums> sums{};
  std::int64_t i = 0;
  for (; i + kSums <= count; i += kSums) {
    for (std::int64_t k = 0; k < kSums; ++k) {
      const double value = static_cast<double>(values[i + k]) * factor;
      sums[static_cast<std::size_t>(k)] += value * value;
    }
  }
  double sum = 0;
  for (; i < count; ++i) {
    const double value = static_cast<double>(values[i]) * factor;
    sum += value * value;
  }
  for (const double one : sums)
    sum += one;
  return sum;
}

template <typename T>
double norm_of(const T* values, std::int64_t count, double factor) {
  const std::int64_t blocks = (count + kBlock - 1) / kBlock;
  std::vector<double> sums(static_cast<std::size_t>(blocks));
  at::parallel_for(0, blocks, kBlocksAtOnce, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t block = begin; block < end; ++block) {
      const std::int64_t first = block * kBlock;
      sums[static_cast<std::size_t>(block)] =
          sum_of_squares(values + first, std::min(kBlock, count - first), factor);
    }
  });
  double sum = 0;
  for (const double one : sums)
    sum += one;
  return std::sqrt(sum) / factor;
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
             ? norm_of(dense.data_ptr<float>(), dense.numel(), 1)
             : norm_of_doubles(dense.data_ptr<double>(), dense.numel());
}

}  // namespace treadle

#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/ops/tensor.h>

namespace treadle::internal {

/// float64 [count] in [0, 1), by the linear congruential generator of the scripts *_reference.py
/// here, which so have the same numbers.
inline at::Tensor lcg_numbers(std::int64_t seed, std::int64_t count) {
  std::vector<double> numbers;
  std::int64_t state = seed;
  for (std::int64_t i = 0; i < count; ++i) {
    state = (1103515245 * state + 12345) % 2147483648;
    numbers.push_back(static_cast<double>(state) / 2147483648.0);
  }
  return at::tensor(numbers, at::kDouble);
}

}  // namespace treadle::internal

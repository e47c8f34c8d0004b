#include "growing_buffer.h"

#include <array>
#include <cstring>

namespace treadle::csv {
namespace {

constexpr std::size_t kBlock = 2048;

/// NaN, a missing value, is exact as well.
bool is_exact(const double* values, std::size_t count) {
  unsigned differs = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double rounded = static_cast<float>(values[i]);
    differs |=
        static_cast<unsigned>(rounded != values[i]) & static_cast<unsigned>(values[i] == values[i]);
  }
  return differs == 0;
}

}  // namespace

at::Tensor release_exact(GrowingBuffer<double>& values, at::IntArrayRef shape) {
  const std::size_t count = values.size();
  double* const from = values.data();
  for (std::size_t begin = 0; begin < count; begin += kBlock) {
    // Most columns of fractions are told by their first rows.
    if (!is_exact(from + begin, std::min(kBlock, count - begin)))
      return values.release(shape, at::kDouble);
  }
  std::array<float, kBlock> block;  // what is written lies behind what is still to be read
  for (std::size_t begin = 0; begin < count; begin += kBlock) {
    const std::size_t some = std::min(kBlock, count - begin);
    for (std::size_t i = 0; i < some; ++i)
      block[i] = static_cast<float>(from[begin + i]);
    std::memcpy(reinterpret_cast<std::byte*>(from) + begin * sizeof(float), block.data(),
                some * sizeof(float));
  }
  return values.release(shape, at::kFloat);
}

}  // namespace treadle::csv

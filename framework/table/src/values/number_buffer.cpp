#include "values/number_buffer.h"

#include <algorithm>
#include <utility>

namespace treadle::table {
namespace {

/// Not 0 where float32 cannot hold the number.
unsigned narrow(double from, float& to) {
  to = static_cast<float>(from);
  const auto back = static_cast<double>(to);
  return static_cast<unsigned>(back != from) & static_cast<unsigned>(from == from);
}

}  // namespace

void NumberBuffer::commit_narrow(std::size_t count) {
  constexpr std::size_t kPart = 4;  // a number of rounds that compilers make vectors for
  float* const to = narrow_.room(count);
  unsigned differs = 0;
  std::size_t i = 0;
  for (; i + kPart <= count; i += kPart) {
    for (std::size_t k = 0; k < kPart; ++k)
      differs |= narrow(row_[i + k], to[i + k]);
  }
  for (; i < count; ++i)
    differs |= narrow(row_[i], to[i]);
  if (differs == 0)
    return narrow_.commit(count);
  // Mostly in the first row: a column of fractions has none in float32.
  const std::size_t before = narrow_.size();
  double* const wide = wide_.room(before + count);
  std::copy_n(narrow_.data(), before, wide);
  std::copy_n(row_.data(), count, wide + before);
  wide_.commit(before + count);
  const GrowingBuffer<float> no_longer_needed = std::move(narrow_);
  is_wide_ = true;
}

}  // namespace treadle::table

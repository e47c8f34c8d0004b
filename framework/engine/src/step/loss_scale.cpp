#include <treadle/engine/loss_scale.h>

#include <algorithm>
#include <bit>

namespace treadle::engine {

double LossScale::divisor(std::int64_t positions) {
  return static_cast<double>(
      std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(positions, 1))));
}

void LossScale::update(bool has_overflowed) {
  good_steps = has_overflowed ? 0 : good_steps + 1;
  if (has_overflowed) {
    scale *= kBackoff;
  } else if (good_steps == kInterval) {
    good_steps = 0;
    if (scale * kGrowth <= kLargest)
      scale *= kGrowth;
  }
}

}  // namespace treadle::engine

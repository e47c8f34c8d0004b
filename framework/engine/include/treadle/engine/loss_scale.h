#pragma once

#include <cstdint>
#include <limits>

namespace treadle::engine {

/// The factor of the loss in a training whose activations have float16, so that small gradients do
/// not become zero: halved where a gradient overflows, in a step that changes nothing, and doubled
/// after kInterval steps without.
///
/// It is a power of two, and so is the number of positions that a step's sum is divided by first
/// (divisor()): where nothing overflows or becomes zero, not one bit of a step depends on it.
///
/// Source: Micikevicius et al., "Mixed Precision Training" (2018), section 3.2; the numbers are
/// those of torch.cuda.amp.GradScaler.
struct LossScale {
  static constexpr double kFirst = 65536;
  static constexpr double kGrowth = 2;
  static constexpr double kBackoff = 0.5;
  static constexpr std::int64_t kInterval = 2000;
  static constexpr double kLargest = std::numeric_limits<float>::max();
  /// More overflows in a row are a divergence: from kFirst the scale is then below 1e-4, and it is
  /// not what makes them.
  static constexpr std::int64_t kMostSkips = 30;

  double scale = kFirst;
  std::int64_t good_steps = 0;  ///< since it changed

  /// Of a step's loss, which is a sum over `positions`; a mean would be smaller by this factor.
  static double divisor(std::int64_t positions);
  /// After a step.
  void update(bool has_overflowed);
};

}  // namespace treadle::engine

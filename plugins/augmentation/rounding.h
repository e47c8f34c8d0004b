#pragma once

namespace treadle::augmentation {

/// The nearest whole number, the even one of two: std::nearbyint without a call, which it is where
/// SSE 4.1 is not assumed. Expects |value| < 2^51.
inline double rounded(double value) {
  constexpr double kShift = 0x1.8p52;
  return (value + kShift) - kShift;
}

/// Expects |value| < 2^22.
inline float rounded(float value) {
  constexpr float kShift = 0x1.8p23F;
  return (value + kShift) - kShift;
}

}  // namespace treadle::augmentation

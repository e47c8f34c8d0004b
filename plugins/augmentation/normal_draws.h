#pragma once

#include <cmath>
#include <numbers>

#include <treadle/base/random.h>

namespace treadle::augmentation {

/// Standard normal numbers, by Box-Muller; both numbers of a pair are used.
class NormalDraws {
 public:
  explicit NormalDraws(RandomBits bits) : bits_(bits) {}

  double next() {
    has_other_ = !has_other_;
    if (!has_other_)
      return other_;
    const double radius = std::sqrt(-2 * std::log(1 - bits_.uniform()));
    const double angle = 2 * std::numbers::pi * bits_.uniform();
    other_ = radius * std::sin(angle);
    return radius * std::cos(angle);
  }

 private:
  RandomBits bits_;
  double other_ = 0;
  bool has_other_ = false;
};

}  // namespace treadle::augmentation

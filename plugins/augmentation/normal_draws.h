#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include <treadle/base/random.h>

namespace treadle::augmentation {

/// Standard normal numbers by the ziggurat method, as J. A. Doornik has it ("An Improved Ziggurat
/// Method to Generate Normal Random Samples", 2005): the area under the density is cut into 128
/// layers of one size, and nearly all draws need a layer, a number and a multiplication. Three to
/// four times as fast as Box-Muller.
class NormalDraws {
 public:
  explicit NormalDraws(RandomBits bits) : bits_(bits), layers_(Layers::all()) {}

  double next() {
    for (;;) {
      // The lowest bits choose the layer, the highest 53 the place in it.
      const std::uint64_t drawn = bits_.next();
      const std::size_t layer = drawn % kLayers;
      const double place = static_cast<double>(drawn >> 11) * 0x1p-52 - 1;
      if (std::abs(place) < layers_.inside[layer])
        return place * layers_.edge[layer];
      double value = 0;
      if (layer == 0)
        return tail(place < 0);
      if (is_under_density(layer, place, value))
        return value;
    }
  }

 private:
  static constexpr std::size_t kLayers = 128;

  struct Layers {
    Layers();
    static const Layers& all();

    std::array<double, kLayers + 1> edge{};  ///< where a layer ends; the lowest has the tail
    std::array<double, kLayers> inside{};    ///< the share of it that lies below the next one
  };

  double tail(bool is_negative);
  bool is_under_density(std::size_t layer, double place, double& value);

  RandomBits bits_;
  const Layers& layers_;
};

}  // namespace treadle::augmentation

#include "normal_draws.h"

namespace treadle::augmentation {
namespace {

// For 128 layers (Doornik 2005, table 1): where the tail begins, and the area of each.
constexpr double kTail = 3.442619855899;
constexpr double kArea = 9.91256303526217e-3;

double density(double x) {
  return std::exp(-0.5 * x * x);
}

}  // namespace

NormalDraws::Layers::Layers() {
  edge[0] = kArea / density(kTail);
  edge[1] = kTail;
  for (std::size_t i = 2; i < kLayers; ++i)
    edge[i] = std::sqrt(-2 * std::log(kArea / edge[i - 1] + density(edge[i - 1])));
  edge[kLayers] = 0;
  for (std::size_t i = 0; i < kLayers; ++i)
    inside[i] = edge[i + 1] / edge[i];
}

const NormalDraws::Layers& NormalDraws::Layers::all() {
  static const Layers layers;
  return layers;
}

// G. Marsaglia, "Generating a Variable from the Tail of the Normal Distribution", 1964.
double NormalDraws::tail(bool is_negative) {
  double beyond = 0;
  double height = 0;
  do {
    beyond = std::log(1 - bits_.uniform()) / kTail;
    height = std::log(1 - bits_.uniform());
  } while (-2 * height < beyond * beyond);
  return is_negative ? beyond - kTail : kTail - beyond;
}

bool NormalDraws::is_under_density(std::size_t layer, double place, double& value) {
  value = place * layers_.edge[layer];
  const double low = density(layers_.edge[layer]) / density(value);
  const double high = density(layers_.edge[layer + 1]) / density(value);
  return high + bits_.uniform() * (low - high) < 1;
}

}  // namespace treadle::augmentation

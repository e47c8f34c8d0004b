#include "random_features.h"

#include <cmath>
#include <numbers>

#include <ATen/ops/cos.h>
#include <ATen/ops/empty.h>

#include <treadle/core/linear.h>

#include "made.h"

namespace treadle::tabular {

RandomFourierFeatures::RandomFourierFeatures(const Config& config, const LayerSpec& spec) {
  const std::int64_t width = width_of_rows(spec);
  const auto count = config.get<std::int64_t>("out_features");
  const double gamma = config.get_or("gamma", 1 / static_cast<double>(width));
  weight_ = register_buffer("weight",
                            at::empty({count, width}, spec.dtype).normal_(0, std::sqrt(2 * gamma)));
  bias_ = register_buffer("bias", at::empty({count}, spec.dtype).uniform_(0, 2 * std::numbers::pi));
}

at::Tensor RandomFourierFeatures::forward(const Inputs& inputs, LayerContext&) {
  const double size = std::sqrt(2 / static_cast<double>(bias_.size(0)));
  return at::cos(linear_in_precision(inputs[0], weight_, bias_)).mul(size);
}

}  // namespace treadle::tabular

#include "pooling.h"

#include <array>
#include <tuple>

#include <ATen/ops/adaptive_avg_pool1d.h>
#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/adaptive_max_pool1d.h>
#include <ATen/ops/adaptive_max_pool2d.h>
#include <ATen/ops/avg_pool1d.h>
#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/max_pool1d.h>
#include <ATen/ops/max_pool2d.h>

namespace treadle::layers {
namespace {

constexpr std::array<std::string_view, 3> kWanted{"", "sequences [B, channels, length]",
                                                  "images [B, channels, height, width]"};

}  // namespace

template <std::size_t kDimensions, Pool kPool>
void Pooling<kDimensions, kPool>::judge(const Config& config) {
  const auto kernel = per_dimension(config, "kernel", kDimensions);
  const auto padding = per_dimension(config, "padding", kDimensions);
  per_dimension(config, "stride", kDimensions);
  for (std::size_t i = 0; i < kDimensions; ++i) {
    if (padding[i] > kernel[i] / 2)
      config.fail("padding", "must be at most half of \"kernel\"");
  }
}

template <std::size_t kDimensions, Pool kPool>
Pooling<kDimensions, kPool>::Pooling(const Config& config, const LayerSpec& spec)
    : kernel_(per_dimension(config, "kernel", kDimensions)),
      stride_(per_dimension(config, "stride", kDimensions)),
      padding_(per_dimension(config, "padding", kDimensions)) {
  only_input(spec);
  expect_dimensions(spec, kDimensions + 2, kWanted[kDimensions]);
  for (std::size_t i = 0; i < kDimensions; ++i) {
    if (stride_[i] == 0)
      stride_[i] = kernel_[i];
  }
}

template <std::size_t kDimensions, Pool kPool>
at::Tensor Pooling<kDimensions, kPool>::forward(const Inputs& inputs, LayerContext&) {
  if constexpr (kDimensions == 1 && kPool == Pool::kMax) {
    return at::max_pool1d(inputs[0], kernel_, stride_, padding_);
  } else if constexpr (kDimensions == 1) {
    return at::avg_pool1d(inputs[0], kernel_, stride_, padding_);
  } else if constexpr (kPool == Pool::kMax) {
    return at::max_pool2d(inputs[0], kernel_, stride_, padding_);
  } else {
    return at::avg_pool2d(inputs[0], kernel_, stride_, padding_);
  }
}

template <std::size_t kDimensions, Pool kPool>
void AdaptivePooling<kDimensions, kPool>::judge(const Config& config) {
  per_dimension(config, "size", kDimensions);
}

template <std::size_t kDimensions, Pool kPool>
AdaptivePooling<kDimensions, kPool>::AdaptivePooling(const Config& config, const LayerSpec& spec)
    : size_(per_dimension(config, "size", kDimensions)) {
  only_input(spec);
  expect_dimensions(spec, kDimensions + 2, kWanted[kDimensions]);
}

template <std::size_t kDimensions, Pool kPool>
at::Tensor AdaptivePooling<kDimensions, kPool>::forward(const Inputs& inputs, LayerContext&) {
  if constexpr (kDimensions == 1 && kPool == Pool::kMax) {
    return std::get<0>(at::adaptive_max_pool1d(inputs[0], size_));
  } else if constexpr (kDimensions == 1) {
    return at::adaptive_avg_pool1d(inputs[0], size_);
  } else if constexpr (kPool == Pool::kMax) {
    return std::get<0>(at::adaptive_max_pool2d(inputs[0], size_));
  } else {
    return at::adaptive_avg_pool2d(inputs[0], size_);
  }
}

template class Pooling<1, Pool::kMax>;
template class Pooling<1, Pool::kAverage>;
template class Pooling<2, Pool::kMax>;
template class Pooling<2, Pool::kAverage>;
template class AdaptivePooling<1, Pool::kMax>;
template class AdaptivePooling<1, Pool::kAverage>;
template class AdaptivePooling<2, Pool::kMax>;
template class AdaptivePooling<2, Pool::kAverage>;

}  // namespace treadle::layers

#include "pooling.h"

#include <algorithm>
#include <array>
#include <memory>
#include <tuple>
#include <utility>

#include <ATen/ops/_adaptive_avg_pool2d.h>
#include <ATen/ops/_adaptive_avg_pool2d_backward.h>
#include <ATen/ops/adaptive_avg_pool1d.h>
#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/adaptive_max_pool1d.h>
#include <ATen/ops/adaptive_max_pool2d.h>
#include <ATen/ops/adaptive_max_pool2d_backward.h>
#include <ATen/ops/avg_pool1d.h>
#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/avg_pool2d_backward.h>
#include <ATen/ops/max_pool1d.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/max_pool2d_with_indices.h>
#include <ATen/ops/max_pool2d_with_indices_backward.h>

#include <treadle/plan/op.h>

#include "shapes.h"

namespace treadle::layers {
namespace {

constexpr std::array<std::string_view, 3> kPooledShapes{"", "sequences [B, channels, length]",
                                                        "images [B, channels, height, width]"};

/// What pooling over images has in common.
class PoolOp : public PlanOp {
 public:
  PoolOp(std::vector<std::int64_t> kernel, std::vector<std::int64_t> stride,
         std::vector<std::int64_t> padding)
      : kernel_(std::move(kernel)), stride_(std::move(stride)), padding_(std::move(padding)) {}

  TensorSpec result(std::span<const TensorSpec> inputs) const override {
    TensorSpec result = inputs[0];
    for (std::size_t i = 0; i < 2; ++i) {
      std::int64_t& size = result.sizes[i + 2];
      size = (size + 2 * padding_[i] - kernel_[i]) / stride_[i] + 1;
    }
    return result;
  }

 protected:
  std::vector<std::int64_t> kernel_;
  std::vector<std::int64_t> stride_;
  std::vector<std::int64_t> padding_;
};

class MaxPoolOp final : public PoolOp {
 public:
  using PoolOp::PoolOp;

  std::string_view name() const override { return "max_pool"; }

  /// Where each window's largest element is.
  std::vector<TensorSpec> keeps(std::span<const TensorSpec> inputs) const override {
    return {{result(inputs).sizes, at::kLong}};
  }

  void forward(const Inputs& inputs, at::Tensor& output,
               std::span<at::Tensor> kept) const override {
    at::max_pool2d_with_indices_out(output, kept[0], inputs[0], kernel_, stride_, padding_);
  }

  void backward(const PlanGradients& gradients) const override {
    if (gradients.wanted[0]) {
      at::max_pool2d_with_indices_backward_out(gradients.of_inputs[0], gradients.of_output,
                                               gradients.inputs[0], kernel_, stride_, padding_,
                                               /*dilation=*/1, /*ceil_mode=*/false,
                                               gradients.kept[0]);
    }
  }
};

class AveragePoolOp final : public PoolOp {
 public:
  using PoolOp::PoolOp;

  std::string_view name() const override { return "avg_pool"; }

  void forward(const Inputs& inputs, at::Tensor& output, std::span<at::Tensor>) const override {
    at::avg_pool2d_out(output, inputs[0], kernel_, stride_, padding_);
  }

  void backward(const PlanGradients& gradients) const override {
    if (gradients.wanted[0]) {
      at::avg_pool2d_backward_out(gradients.of_inputs[0], gradients.of_output, gradients.inputs[0],
                                  kernel_, stride_, padding_,
                                  /*ceil_mode=*/false, /*count_include_pad=*/true, c10::nullopt);
    }
  }
};

class AdaptiveMaxPoolOp final : public PlanOp {
 public:
  explicit AdaptiveMaxPoolOp(std::vector<std::int64_t> size) : size_(std::move(size)) {}

  std::string_view name() const override { return "adaptive_max_pool"; }

  TensorSpec result(std::span<const TensorSpec> inputs) const override {
    TensorSpec result = inputs[0];
    std::copy(size_.begin(), size_.end(), result.sizes.begin() + 2);
    return result;
  }

  /// Where each window's largest element is.
  std::vector<TensorSpec> keeps(std::span<const TensorSpec> inputs) const override {
    return {{result(inputs).sizes, at::kLong}};
  }

  void forward(const Inputs& inputs, at::Tensor& output,
               std::span<at::Tensor> kept) const override {
    at::adaptive_max_pool2d_out(output, kept[0], inputs[0], size_);
  }

  void backward(const PlanGradients& gradients) const override {
    if (gradients.wanted[0]) {
      at::adaptive_max_pool2d_backward_out(gradients.of_inputs[0], gradients.of_output,
                                           gradients.inputs[0], gradients.kept[0]);
    }
  }

 private:
  std::vector<std::int64_t> size_;
};

/// For results of more than one element: libtorch computes those of one as a mean.
class AdaptiveAveragePoolOp final : public PlanOp {
 public:
  explicit AdaptiveAveragePoolOp(std::vector<std::int64_t> size) : size_(std::move(size)) {}

  std::string_view name() const override { return "adaptive_avg_pool"; }
  bool allocates() const override { return true; }

  void forward(const Inputs& inputs, at::Tensor& output, std::span<at::Tensor>) const override {
    output = at::_adaptive_avg_pool2d(inputs[0], size_);
  }

  void backward(const PlanGradients& gradients) const override {
    if (gradients.wanted[0]) {
      gradients.of_inputs[0] =
          at::_adaptive_avg_pool2d_backward(gradients.of_output, gradients.inputs[0]);
    }
  }

 private:
  std::vector<std::int64_t> size_;
};

// libtorch pools sequences as images of height 1.

/// What a layer takes of each dimension, as two numbers.
std::vector<std::int64_t> of_images(std::vector<std::int64_t> numbers, std::int64_t of_height) {
  if (numbers.size() == 1)
    numbers.insert(numbers.begin(), of_height);
  return numbers;
}

template <std::size_t kDimensions>
PlanValue as_images(PlanBuilder& builder, PlanValue input) {
  if constexpr (kDimensions != 1)
    return input;
  std::vector<std::int64_t> sizes = builder.spec(input).sizes;
  sizes.insert(sizes.end() - 1, 1);
  return builder.reshape(input, std::move(sizes));
}

template <std::size_t kDimensions>
PlanValue from_images(PlanBuilder& builder, PlanValue images) {
  if constexpr (kDimensions != 1)
    return images;
  std::vector<std::int64_t> sizes = builder.spec(images).sizes;
  sizes.erase(sizes.end() - 2);
  return builder.reshape(images, std::move(sizes));
}

}  // namespace

template <std::size_t kDimensions, Pool kPool>
void Pooling<kDimensions, kPool>::check(const Config& config) {
  const auto kernel = per_dimension(config, "kernel_size", kDimensions);
  const auto padding = per_dimension(config, "padding", kDimensions);
  per_dimension(config, "stride", kDimensions);
  for (std::size_t i = 0; i < kDimensions; ++i) {
    if (padding[i] > kernel[i] / 2)
      config.fail("padding", "must be at most half of \"kernel_size\"");
  }
}

template <std::size_t kDimensions, Pool kPool>
Pooling<kDimensions, kPool>::Pooling(const Config& config, const LayerSpec& spec)
    : kernel_(per_dimension(config, "kernel_size", kDimensions)),
      stride_(per_dimension(config, "stride", kDimensions)),
      padding_(per_dimension(config, "padding", kDimensions)) {
  only_input(spec);
  expect_dimensions(spec, kDimensions + 2, kPooledShapes[kDimensions]);
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
std::optional<PlanValue> Pooling<kDimensions, kPool>::lower(
    PlanBuilder& builder, std::span<const PlanValue> inputs) const {
  const PlanValue images = as_images<kDimensions>(builder, inputs[0]);
  if constexpr (kPool == Pool::kMax) {
    return from_images<kDimensions>(
        builder,
        builder.apply(std::make_shared<MaxPoolOp>(of_images(kernel_, 1), of_images(stride_, 1),
                                                  of_images(padding_, 0)),
                      images));
  } else {
    return from_images<kDimensions>(
        builder,
        builder.apply(std::make_shared<AveragePoolOp>(of_images(kernel_, 1), of_images(stride_, 1),
                                                      of_images(padding_, 0)),
                      images));
  }
}

template <std::size_t kDimensions, Pool kPool>
void AdaptivePooling<kDimensions, kPool>::check(const Config& config) {
  per_dimension(config, "output_size", kDimensions);
}

template <std::size_t kDimensions, Pool kPool>
AdaptivePooling<kDimensions, kPool>::AdaptivePooling(const Config& config, const LayerSpec& spec)
    : size_(per_dimension(config, "output_size", kDimensions)) {
  only_input(spec);
  expect_dimensions(spec, kDimensions + 2, kPooledShapes[kDimensions]);
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

template <std::size_t kDimensions, Pool kPool>
std::optional<PlanValue> AdaptivePooling<kDimensions, kPool>::lower(
    PlanBuilder& builder, std::span<const PlanValue> inputs) const {
  const PlanValue images = as_images<kDimensions>(builder, inputs[0]);
  const std::vector<std::int64_t> size = of_images(size_, 1);
  if constexpr (kPool == Pool::kMax) {
    return from_images<kDimensions>(
        builder, builder.apply(std::make_shared<AdaptiveMaxPoolOp>(size), images));
  } else if (size == std::vector<std::int64_t>{1, 1}) {
    std::vector<std::int64_t> sizes = builder.spec(inputs[0]).sizes;
    std::fill(sizes.begin() + 2, sizes.end(), 1);
    return builder.reshape(builder.apply(plan_mean({-1, -2}), images), std::move(sizes));
  } else {
    return from_images<kDimensions>(
        builder, builder.apply(std::make_shared<AdaptiveAveragePoolOp>(size), images));
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

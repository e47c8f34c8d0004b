#pragma once

#include <cstdint>

#include <ATen/ops/flatten.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/relu.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

namespace treadle::benchmarks {

/// LeNet-5 (LeCun et al., "Gradient-based learning applied to document recognition", 1998) as it is
/// built today: max pooling and ReLU.
///
///     conv 6@5x5, padding 2 → pool 2 → conv 16@5x5 → pool 2 → 120 → 84 → outputs
///
/// Takes [B, channels, height, width], gives [B, outputs].
class LeNet final : public torch::nn::Module {
 public:
  static constexpr std::int64_t kSmallestSide = 12;  // leaves one pixel for the linear layers

  LeNet(std::int64_t channels, std::int64_t height, std::int64_t width, std::int64_t outputs)
      : conv1_(register_module(
            "conv1", torch::nn::Conv2d(torch::nn::Conv2dOptions(channels, 6, 5).padding(2)))),
        conv2_(register_module("conv2", torch::nn::Conv2d(torch::nn::Conv2dOptions(6, 16, 5)))),
        linear1_(register_module("linear1",
                                 torch::nn::Linear(16 * pooled(height) * pooled(width), 120))),
        linear2_(register_module("linear2", torch::nn::Linear(120, 84))),
        output_(register_module("output", torch::nn::Linear(84, outputs))) {}

  at::Tensor forward(const at::Tensor& images) {
    at::Tensor values = at::max_pool2d(at::relu(conv1_->forward(images)), {2, 2});
    values = at::max_pool2d(at::relu(conv2_->forward(values)), {2, 2});
    values = at::relu(linear1_->forward(at::flatten(values, 1)));
    return output_->forward(at::relu(linear2_->forward(values)));
  }

 private:
  static std::int64_t pooled(std::int64_t side) { return (side / 2 - 4) / 2; }

  torch::nn::Conv2d conv1_;
  torch::nn::Conv2d conv2_;
  torch::nn::Linear linear1_;
  torch::nn::Linear linear2_;
  torch::nn::Linear output_;
};

}  // namespace treadle::benchmarks

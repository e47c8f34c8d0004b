#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/ops/layer_norm.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/softmax.h>
#if __has_include(<ATen/ops/scaled_dot_product_attention.h>)  // not in libtorch 1.13
#include <ATen/ops/scaled_dot_product_attention.h>
#define TREADLE_BENCHMARKS_FUSED_ATTENTION
#endif
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

namespace treadle::benchmarks {

struct EncoderShape {
  std::int64_t width = 64;
  std::int64_t heads = 4;  ///< a divisor of the width
  std::int64_t feed_forward = 256;
  std::int64_t layers = 2;
};

/// softmax(q k^T / sqrt(d)) v, for [B, heads, length, d]: in one operator, where libtorch has it.
inline at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
#ifdef TREADLE_BENCHMARKS_FUSED_ATTENTION
  return at::scaled_dot_product_attention(q, k, v);
#else
  const double scale = 1 / std::sqrt(static_cast<double>(q.size(-1)));
  return at::matmul(at::softmax(at::matmul(q.mul(scale), k.transpose(-2, -1)), -1), v);
#endif
}

/// A layer of the encoder of Vaswani et al., "Attention is all you need", 2017, without dropout:
///
///     y = norm1(x + out(attention(qkv(x))));  norm2(y + linear2(relu(linear1(y))))
class EncoderLayer final : public torch::nn::Module {
 public:
  explicit EncoderLayer(const EncoderShape& shape)
      : width_(shape.width),
        heads_(shape.heads),
        qkv_(register_module("qkv", torch::nn::Linear(shape.width, 3 * shape.width))),
        out_(register_module("out", torch::nn::Linear(shape.width, shape.width))),
        norm1_(register_module("norm1", norm(shape.width))),
        linear1_(register_module("linear1", torch::nn::Linear(shape.width, shape.feed_forward))),
        linear2_(register_module("linear2", torch::nn::Linear(shape.feed_forward, shape.width))),
        norm2_(register_module("norm2", norm(shape.width))) {}

  at::Tensor forward(const at::Tensor& values) {
    const std::int64_t rows = values.size(0);
    const std::int64_t length = values.size(1);
    const at::Tensor qkv = qkv_->forward(values)
                               .view({rows, length, 3, heads_, width_ / heads_})
                               .permute({2, 0, 3, 1, 4});
    const at::Tensor mixed = attention(qkv.select(0, 0), qkv.select(0, 1), qkv.select(0, 2))
                                 .transpose(1, 2)
                                 .reshape({rows, length, width_});
    const at::Tensor attended = norm1_->forward(values.add(out_->forward(mixed)));
    const at::Tensor fed = linear2_->forward(at::relu(linear1_->forward(attended)));
    return norm2_->forward(attended.add(fed));
  }

 private:
  static torch::nn::LayerNorm norm(std::int64_t width) {
    return torch::nn::LayerNorm(torch::nn::LayerNormOptions({width}));
  }

  std::int64_t width_;
  std::int64_t heads_;
  torch::nn::Linear qkv_;
  torch::nn::Linear out_;
  torch::nn::LayerNorm norm1_;
  torch::nn::Linear linear1_;
  torch::nn::Linear linear2_;
  torch::nn::LayerNorm norm2_;
};

/// A linear layer, learned positions, encoder layers, the mean over the positions, a linear layer.
/// Takes [B, length, features], gives [B, outputs].
class Encoder final : public torch::nn::Module {
 public:
  Encoder(const EncoderShape& shape, std::int64_t length, std::int64_t features,
          std::int64_t outputs)
      : input_(register_module("input", torch::nn::Linear(features, shape.width))),
        positions_(
            register_parameter("positions", at::randn({length, shape.width}).mul_(kSpread))) {
    const auto layers = register_module("layers", std::make_shared<torch::nn::Module>("Layers"));
    for (std::int64_t i = 0; i < shape.layers; ++i) {
      layers_.push_back(
          layers->register_module(std::to_string(i), std::make_shared<EncoderLayer>(shape)));
    }
    output_ = register_module("output", torch::nn::Linear(shape.width, outputs));
  }

  at::Tensor forward(const at::Tensor& sequences) {
    at::Tensor values = input_->forward(sequences).add(positions_);
    for (const auto& layer : layers_)
      values = layer->forward(values);
    return output_->forward(values.mean(1));
  }

 private:
  static constexpr double kSpread = 0.02;  // of initial positions, as in BERT

  torch::nn::Linear input_;
  at::Tensor positions_;
  std::vector<std::shared_ptr<EncoderLayer>> layers_;
  torch::nn::Linear output_{nullptr};
};

}  // namespace treadle::benchmarks

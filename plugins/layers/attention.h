#pragma once

#include <treadle/core/layer.h>

#include "made.h"

namespace treadle::layers {

/// Multi-head scaled dot-product attention of a sequence [B, T, width] to itself, or to the
/// sequence [B, S, …] that is its reference. Vaswani et al., "Attention Is All You Need" (2017):
/// softmax(Q Kᵀ / √d) V for each head, all heads side by side, and a linear map. To itself
/// "in_weight" is [3 · width, width] (queries, keys, values one below the other, as in
/// torch.nn.MultiheadAttention).
class Attention final : public Layer {
 public:
  Attention(const Config& config, const LayerSpec& spec);
  at::Tensor forward(const Inputs& inputs, LayerContext& context) override;

 private:
  at::Tensor heads_of(const at::Tensor& rows) const;

  std::int64_t width_ = 0;
  std::int64_t heads_;
  double dropout_;
  bool causal_;
  at::Tensor in_weight_;  // queries alone when there is a reference
  at::Tensor in_bias_;
  at::Tensor memory_weight_;  // keys and values of the reference
  at::Tensor memory_bias_;
  at::Tensor out_weight_;
  at::Tensor out_bias_;
};

}  // namespace treadle::layers

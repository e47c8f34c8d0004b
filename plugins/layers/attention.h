#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <treadle/core/layer.h>

#include "made.h"

namespace treadle::layers {

/// Multi-head scaled dot-product attention of a sequence [B, T, width] to itself, or to the
/// sequence [B, S, …] that is its reference. Vaswani et al., "Attention Is All You Need" (2017):
/// softmax(Q Kᵀ / √d) V for each head, all heads side by side, and a linear map. To itself
/// "in_weight" is [3 · width, width] (queries, keys, values one below the other, as in
/// torch.nn.MultiheadAttention).
///
/// A further output, "attn_weights" [B, T, S]: how much each position takes from each of the other
/// sequence, the mean over heads, as torch.nn.MultiheadAttention gives it.
///
/// A further reference, lengths [B] or a mask [B, S] of the sequence that it looks at, hides that
/// sequence's padding. A position that sees nothing mixes zeros.
class Attention final : public Layer, public TakesIndices, public NamesOutputs {
 public:
  Attention(const Config& config, const LayerSpec& spec);
  at::Tensor forward(const Inputs& inputs, LayerContext& context) override;
  bool takes_indices(std::size_t index) const override { return padding_ && index == *padding_; }
  std::vector<std::string> output_names() const override;

 private:
  at::Tensor heads_of(const at::Tensor& rows) const;

  std::optional<std::size_t> memory_;   // which input is the sequence it looks at
  std::optional<std::size_t> padding_;  // which one describes that sequence's padding
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

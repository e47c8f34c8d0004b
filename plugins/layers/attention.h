#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <treadle/core/model/abilities/draws_in_training.h>
#include <treadle/core/model/abilities/keeps_state.h>
#include <treadle/core/model/abilities/names_outputs.h>
#include <treadle/core/model/abilities/takes_indices.h>
#include <treadle/core/model/layer.h>

#include "attention_inputs.h"
#include "rotary.h"
#include "stream.h"

namespace treadle::layers {

/// Multi-head scaled dot-product attention of a sequence [B, T, width] to itself, or to the
/// sequence [B, S, …] that is its reference. Vaswani et al., "Attention Is All You Need" (2017):
/// softmax(Q Kᵀ / √d) V for each head, all heads side by side, and a linear map.
///
/// To itself "in_weight" is [(heads + 2 kv_heads) · d, width]: queries, keys, values one below the
/// other, as in torch.nn.MultiheadAttention. To another sequence it is [heads · d, width], and
/// "memory_weight" [2 kv_heads · d, …] gives keys and values. "out_weight": [width, heads · d].
/// d: head_dim, width / heads unless given. heads / kv_heads heads that follow each other share
/// keys and values (Ainslie et al., "GQA", 2023).
///
/// Which keys a query sees: AttentionInputs and Visibility. One that sees nothing mixes zeros.
/// Rotary positions restart in each segment.
///
/// A further output, "attn_weights" [B, T, S]: how much each position takes from each of the other
/// sequence, the mean over heads, as torch.nn.MultiheadAttention gives it.
///
/// Step by step, where it is causal, evaluation goes on from call to call: queries also see the
/// keys of the calls before, which state() keeps as "keys_and_values" [B, 2, kv_heads, positions,
/// d], turned already; of a window no more than it reaches. Row i continues row i; a call with
/// fewer rows continues the first of them. It then ignores segments: each row is one document.
class Attention final : public Layer,
                        public TakesIndices,
                        public NamesOutputs,
                        public KeepsState,
                        public DrawsInTraining {
 public:
  static void check(const Config& config);
  Attention(const Config& config, const LayerSpec& spec);
  at::Tensor forward(const Inputs& inputs, LayerContext& context) override;
  bool takes_indices(std::size_t index) const override { return roles_.takes_indices(index); }
  std::vector<std::string> output_names() const override;
  bool keeps_state() const override { return has_cache_; }
  bool draws_in_training() const override { return dropout_ > 0; }

 private:
  struct Heads {
    at::Tensor queries;  // [B, heads, T, d]
    at::Tensor keys;     // [B, kv_heads, S, d]
    at::Tensor values;
  };

  TensorSpec do_result(std::span<const TensorSpec> inputs) override;
  Heads projected(const Inputs& inputs) const;
  /// By the positions from `first_position` on; where there is none, by those of each segment.
  void turn(Heads& heads, const Inputs& inputs, std::optional<std::int64_t> first_position) const;
  void continue_cache(Heads& heads, StateDict& state, std::int64_t first_position) const;
  at::Tensor split(const at::Tensor& rows, std::int64_t heads) const;

  std::int64_t width_;
  std::int64_t heads_;
  std::int64_t kv_heads_;
  std::int64_t head_dim_;
  AttentionInputs roles_;
  Visibility visibility_;
  double dropout_;
  bool has_cache_;
  std::optional<Rotary> rotary_;
  at::Tensor in_weight_;  // queries alone when there is a reference
  at::Tensor in_bias_;
  at::Tensor memory_weight_;  // keys and values of the reference
  at::Tensor memory_bias_;
  at::Tensor out_weight_;
  at::Tensor out_bias_;
};

}  // namespace treadle::layers

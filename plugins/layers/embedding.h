#pragma once

#include <vector>

#include <treadle/core/layer.h>
#include <treadle/plan/lowerable.h>

#include "made.h"

namespace treadle::layers {

/// A learned vector for each index: int64 [...] to [..., embedding_dim]. "weight"
/// [num_embeddings, embedding_dim], N(0, 1) at first. With a table for each column, [..., K] to
/// [..., K, embedding_dim], "weight_0", "weight_1", ... An index that no table has, such as -1 for
/// a missing category, is an error.
class Embedding final : public Layer, public Lowerable, public TakesIndices {
 public:
  Embedding(const Config& config, const LayerSpec& spec);
  at::Tensor forward(const Inputs& inputs, LayerContext& context) override;
  std::optional<PlanValue> lower(PlanBuilder& builder,
                                 std::span<const PlanValue> inputs) const override;

 private:
  std::vector<at::Tensor> weights_;  // one, or one for each column
  bool by_column_ = false;
};

/// Adds a vector for each position: [B, T, width]. Learned ("weight" [T, width], N(0, 0.02²) at
/// first), or sines of Vaswani et al. (2017), which need no weights.
class PositionalEncoding final : public Layer, public Lowerable {
 public:
  PositionalEncoding(const Config& config, const LayerSpec& spec);
  at::Tensor forward(const Inputs& inputs, LayerContext& context) override;
  std::optional<PlanValue> lower(PlanBuilder& builder,
                                 std::span<const PlanValue> inputs) const override;

 private:
  at::Tensor vectors_;
};

}  // namespace treadle::layers

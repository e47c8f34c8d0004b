#pragma once

#include <cstdint>
#include <vector>

#include <treadle/core/model/abilities/keeps_state.h>
#include <treadle/core/model/abilities/names_parameter_roles.h>
#include <treadle/core/model/abilities/takes_indices.h>
#include <treadle/core/model/layer.h>
#include <treadle/plan/lowerable.h>

#include "stream.h"

namespace treadle::layers {

/// A learned vector for each index: int64 [...] to [..., embedding_dim]. "weight"
/// [num_embeddings, embedding_dim], N(0, std²) at first. With a table for each column, [..., K] to
/// [..., K, embedding_dim], "weight_0", "weight_1", ... An index that no table has, such as -1 for
/// a missing category, is an error.
class Embedding final : public Layer,
                        public Lowerable,
                        public TakesIndices,
                        public NamesParameterRoles {
 public:
  Embedding(const Config& config, const LayerSpec& spec);
  at::Tensor forward(const Inputs& inputs, LayerContext& context) override;
  std::optional<PlanValue> lower(PlanBuilder& builder,
                                 std::span<const PlanValue> inputs) const override;
  Roles parameter_roles() const override;

 private:
  std::vector<at::Tensor> weights_;  // one, or one for each column
  bool by_column_ = false;
};

/// Adds a vector for each position: [B, T, width]. Learned ("weight" [max_length, width], N(0,
/// 0.02²) at first), or sines of Vaswani et al. (2017), which need no weights. Positions restart in
/// each segment where the reference, int64 [B, T], lists the segments of packed documents.
///
/// Step by step, positions continue in evaluation from call to call, as those of Attention do.
class PositionalEncoding final : public Layer,
                                 public Lowerable,
                                 public TakesIndices,
                                 public KeepsState,
                                 public NamesParameterRoles {
 public:
  static void check(const Config& config);
  PositionalEncoding(const Config& config, const LayerSpec& spec);
  at::Tensor forward(const Inputs& inputs, LayerContext& context) override;
  std::optional<PlanValue> lower(PlanBuilder& builder,
                                 std::span<const PlanValue> inputs) const override;
  bool takes_indices(std::size_t index) const override { return index > 0; }
  bool keeps_state() const override { return has_cache_; }
  Roles parameter_roles() const override { return all(ParameterRole::kTable, {vectors_}); }

 private:
  TensorSpec do_result(std::span<const TensorSpec> inputs) override { return inputs.front(); }
  at::Tensor at_positions(const at::Tensor& positions) const;
  at::Tensor from(std::int64_t first, std::int64_t length, c10::Device device) const;

  std::int64_t width_;
  c10::ScalarType dtype_;
  bool has_segments_;
  bool has_cache_;
  at::Tensor vectors_;  // [positions, width]; undefined: sines, computed as positions come
};

}  // namespace treadle::layers

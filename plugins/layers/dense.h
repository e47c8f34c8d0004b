#pragma once

#include <treadle/core/model/abilities/acts_on_positions.h>
#include <treadle/core/model/abilities/takes_weight.h>
#include <treadle/core/model/layer.h>
#include <treadle/plan/lowerable.h>

#include "stream.h"

namespace treadle::layers {

/// x Wᵀ + b along the last dimension: [..., in] to [..., units]. "weight" [units, in], "bias"
/// [units]. With "tied_to", W is the "weight" of another node: an embedding of `units` vectors,
/// say.
class Dense : public Layer, public Lowerable, public TakesWeight, public ActsOnPositions {
 public:
  Dense(const Config& config, const LayerSpec& spec);

  at::Tensor forward(const Inputs& inputs, LayerContext& context) final;
  std::optional<PlanValue> lower(PlanBuilder& builder,
                                 std::span<const PlanValue> inputs) const override;
  const at::Tensor& own_weight() const final { return weight_; }
  at::Tensor forward_with(const at::Tensor& weight, const Inputs& inputs,
                          LayerContext& context) override;

 protected:
  /// `in`: how wide the stream is.
  Dense(const Config& config, const LayerSpec& spec, std::int64_t in, std::int64_t units);

  const at::Tensor& bias() const { return bias_; }  // may be undefined

 private:
  at::Tensor weight_;
  at::Tensor bias_;
};

/// A Dense that computes an output that the loss requires, or all of them beside each other:
/// [B, positions..., width]. Takes [B, positions..., in] or [B, in, positions...]; of one vector
/// [B, in] it computes all positions at once.
class Head final : public Dense {
 public:
  Head(const Config& config, const LayerSpec& spec);

  at::Tensor forward_with(const at::Tensor& weight, const Inputs& inputs,
                          LayerContext& context) override;
  std::optional<PlanValue> lower(PlanBuilder& builder,
                                 std::span<const PlanValue> inputs) const override;
  bool acts_on_positions() const override { return !channels_first_ && row_.empty(); }

 private:
  struct Sizes;
  Head(const Config& config, const LayerSpec& spec, const Sizes& sizes);

  at::Tensor in_positions(at::Tensor values) const;

  bool channels_first_;
  std::vector<std::int64_t> row_;  // of what is computed from one vector: {positions..., width}
};

}  // namespace treadle::layers

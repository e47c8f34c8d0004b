#pragma once

#include <treadle/core/layer.h>
#include <treadle/core/plan_op.h>

#include "made.h"

namespace treadle::layers {

/// A learned vector for each category: [...] numbers of categories to [..., width]. "weight"
/// [categories, width], N(0, 1) at first. A number that is no category is an error.
class Embedding final : public Layer, public Planned, public TakesCategories {
 public:
  Embedding(const Config& config, const LayerSpec& spec);
  at::Tensor forward(const Inputs& inputs, LayerContext& context) override;
  std::optional<PlanValue> plan(PlanBuilder& builder,
                                std::span<const PlanValue> inputs) const override;

 private:
  at::Tensor weight_;
};

/// Adds a vector for each position: [B, T, width]. Learned ("weight" [T, width], N(0, 0.02²) at
/// first), or sines of Vaswani et al. (2017), which need no weights.
class Positions final : public Layer, public Planned {
 public:
  Positions(const Config& config, const LayerSpec& spec);
  at::Tensor forward(const Inputs& inputs, LayerContext& context) override;
  std::optional<PlanValue> plan(PlanBuilder& builder,
                                std::span<const PlanValue> inputs) const override;

 private:
  at::Tensor vectors_;
};

}  // namespace treadle::layers

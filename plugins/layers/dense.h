#pragma once

#include <treadle/core/layer.h>
#include <treadle/core/plan_op.h>

#include "made.h"

namespace treadle::layers {

/// x Wᵀ + b along the last dimension: [..., in] to [..., units]. "weight" [units, in], "bias"
/// [units].
class Dense : public Layer, public Planned {
 public:
  Dense(const Config& config, const LayerSpec& spec);

  at::Tensor forward(const Inputs& inputs, LayerContext& context) override;
  std::optional<PlanValue> plan(PlanBuilder& builder,
                                std::span<const PlanValue> inputs) const override;

 protected:
  Dense(const Config& config, const LayerSpec& spec, std::int64_t units);

 private:
  at::Tensor weight_;
  at::Tensor bias_;
};

/// A Dense that is as wide as the loss asks for.
class Head final : public Dense {
 public:
  Head(const Config& config, const LayerSpec& spec);
};

}  // namespace treadle::layers

#pragma once

#include <treadle/core/precision/precision.h>

#include "dense.h"

namespace treadle::layers {

/// A Dense in emulated fp8 whatever the precision of the document: float8_linear()
/// (core/linear.h).
class Float8Linear final : public Dense {
 public:
  Float8Linear(const Config& config, const LayerSpec& spec);

  at::Tensor forward_with(const at::Tensor& weight, const Inputs& inputs,
                          LayerContext& context) override;
  std::optional<PlanValue> lower(PlanBuilder& builder,
                                 std::span<const PlanValue> inputs) const override;
  /// Its scales are those of all positions.
  bool acts_on_positions() const override { return false; }

 private:
  Float8Scaling scaling_;
};

/// A Dense in emulated NVFP4: of inputs and weights, along the dimension that is summed, each block
/// of 16 has numbers of E2M1 (0, 0.5, 1, 1.5, 2, 3, 4, 6, ties to even) and a scale of E4M3; the
/// tensor has a scale of float32. The last block may be shorter.
///
///     tensor scale = largest of the tensor / (448 · 6)
///     block scale  = E4M3(largest of the block / 6 / tensor scale)
///     value       ≈ E2M1(value / (block scale · tensor scale)) · block scale · tensor scale
///
/// Gradients are straight-through and not rounded: dx = dy Q(W), dW = dyᵀ Q(x).
///
/// Source: NVIDIA, "Introducing NVFP4 for Efficient and Accurate Low-Precision Inference" (2025);
/// Transformer Engine, `NVFP4BlockScaling`, without its stochastic rounding and its transforms.
class NvFp4Linear final : public Dense {
 public:
  using Dense::Dense;

  at::Tensor forward_with(const at::Tensor& weight, const Inputs& inputs,
                          LayerContext& context) override;
  std::optional<PlanValue> lower(PlanBuilder& builder,
                                 std::span<const PlanValue> inputs) const override;
  /// Its scales are those of all positions.
  bool acts_on_positions() const override { return false; }
};

}  // namespace treadle::layers

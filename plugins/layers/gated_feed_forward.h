#pragma once

#include <cstdint>

#include <treadle/core/model/abilities/draws_in_training.h>
#include <treadle/core/model/layer.h>
#include <treadle/plan/lowerable.h>

#include "stream.h"

namespace treadle::layers {

/// What a gate goes through: "silu", "gelu", …
struct GateActivation;

/// down(activation(gate(x)) · up(x)) along the last dimension, three linear maps: [..., in] to
/// [..., out_features]. Shazeer, "GLU Variants Improve Transformer" (2020): SwiGLU with "silu",
/// GEGLU with "gelu", ReGLU with "relu", GLU with "sigmoid", bilinear with "identity".
///
/// "gate_weight" and "up_weight" [hidden_features, in], "down_weight" [out_features,
/// hidden_features], and a bias for each. Dropout acts on what "down" takes.
class GatedFeedForward final : public Layer, public Lowerable, public DrawsInTraining {
 public:
  GatedFeedForward(const Config& config, const LayerSpec& spec);
  at::Tensor forward(const Inputs& inputs, LayerContext& context) override;
  std::optional<PlanValue> lower(PlanBuilder& builder,
                                 std::span<const PlanValue> inputs) const override;
  bool draws_in_training() const override { return dropout_ > 0; }

 private:
  struct Map {
    at::Tensor weight;
    at::Tensor bias;  // may be undefined
  };

  const GateActivation& activation_;
  double dropout_;
  Map gate_;
  Map up_;
  Map down_;
};

}  // namespace treadle::layers

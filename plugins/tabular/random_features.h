#pragma once

#include <treadle/core/model/layer.h>
#include <treadle/plan/lowerable.h>

namespace treadle::tabular {

/// sqrt(2 / D) cos(W x + b): [B, width] to [B, D]. Products of two rows approximate the kernel
/// exp(-gamma |x - y|²). Buffers "weight" [D, width], N(0, 2 gamma), and "bias" [D], uniform from 0
/// to 2π; neither is trained.
///
/// Source: Rahimi and Recht, "Random Features for Large-Scale Kernel Machines" (2007), in the form
/// of scikit-learn's RBFSampler.
class RandomFourierFeatures final : public Layer, public Lowerable {
 public:
  RandomFourierFeatures(const Config& config, const LayerSpec& spec);
  at::Tensor forward(const Inputs& inputs, LayerContext& context) override;
  std::optional<PlanValue> lower(PlanBuilder& builder,
                                 std::span<const PlanValue> inputs) const override;

 private:
  double size() const;

  at::Tensor weight_;
  at::Tensor bias_;
};

}  // namespace treadle::tabular

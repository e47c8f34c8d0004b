#pragma once

#include <memory>
#include <optional>
#include <span>

#include <ATen/ops/linear.h>
#include <torch/nn/modules/linear.h>

#include <treadle/core/model/layer.h>
#include <treadle/plan/lowerable.h>
#include <treadle/plan/ops.h>
#include <treadle/plan/plan.h>

#include "small_parts.h"

/// Layers that say themselves in operations.
namespace treadle::graph::testing {

/// x Wᵀ + b, which a plan knows.
class Rows final : public Layer, public Lowerable {
 public:
  Rows(std::int64_t in, std::int64_t out) : linear_(in, out) {
    linear_->to(at::kDouble);
    weight_ = register_parameter("weight", linear_->weight);
    bias_ = register_parameter("bias", linear_->bias);
  }
  at::Tensor forward(const Inputs& inputs, LayerContext&) override {
    return at::linear(inputs[0], weight_, bias_);
  }
  std::optional<PlanValue> lower(PlanBuilder& builder,
                                 std::span<const PlanValue> inputs) const override {
    return builder.apply(plan_linear(weight_, bias_), inputs[0]);
  }

 private:
  torch::nn::Linear linear_;
  at::Tensor weight_;
  at::Tensor bias_;
};

/// max(0, x), which a plan knows.
class Rectify final : public Layer, public Lowerable {
 public:
  at::Tensor forward(const Inputs& inputs, LayerContext&) override { return inputs[0].relu(); }
  std::optional<PlanValue> lower(PlanBuilder& builder,
                                 std::span<const PlanValue> inputs) const override {
    return builder.elementwise(ElementwiseOp::kRelu, inputs[0]);
  }
};

inline Part rows(std::int64_t in, std::int64_t out) {
  return std::make_shared<Rows>(in, out);
}
inline Part rectify() {
  return std::make_shared<Rectify>();
}

inline FlowBuilder mlp() {
  return FlowBuilder::from(rows(4, 8))
      .through(rectify())
      .through(rows(8, 8))
      .through(rectify())
      .through(rows(8, 2));
}

inline std::vector<std::string> operations(const plan::Plan& plan) {
  std::vector<std::string> names;
  for (const plan::InstructionInfo& instruction : plan.instructions())
    names.push_back(instruction.operation);
  return names;
}

}  // namespace treadle::graph::testing

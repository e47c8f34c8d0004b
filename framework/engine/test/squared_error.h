#pragma once

#include <span>
#include <utility>
#include <vector>

#include <treadle/core/data/batch.h>
#include <treadle/core/training/loss.h>
#include <treadle/core/training/objective.h>

namespace treadle::engine {

/// Half the squared distance to the target, summed over columns; rows count by their weights.
class SquaredError : public Loss {
  std::vector<OutputSpec> do_outputs_for(const TargetSpec& target) const override {
    return {{"value", {target.width()}}};
  }
  LossTerms do_forward(const std::vector<at::Tensor>& outputs,
                       const TargetBatch& target) const override {
    const at::Tensor each = (outputs[0] - target.values()).square().sum(1) / 2;
    if (!target.weights().defined())
      return {each.sum(), {}};
    return {(each * target.weights()).sum(), target.weights().sum()};
  }
  Prediction do_prediction(const std::vector<at::Tensor>& outputs) const override {
    return {TargetKind::kNumbers, outputs[0]};
  }
};

/// A loss as the only term of an objective for one target.
template <typename LossType>
class ObjectiveOf {
 public:
  explicit ObjectiveOf(TargetSpec target = number_target("y", 2))
      : objective_({{.loss = &loss_}}, std::span(&target, 1)) {}
  ObjectiveOf(const ObjectiveOf&) = delete;
  ObjectiveOf& operator=(const ObjectiveOf&) = delete;

  operator const Objective&() const { return objective_; }
  const Objective* operator&() const { return &objective_; }

 private:
  LossType loss_;
  Objective objective_;
};

}  // namespace treadle::engine

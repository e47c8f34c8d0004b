#pragma once

#include <utility>
#include <vector>

#include <treadle/core/batch.h>
#include <treadle/core/loss.h>

namespace treadle::engine {

/// Half the squared distance to the target, summed over columns; rows count by their weights.
class SquaredError : public Loss {
  std::vector<OutputSpec> do_outputs_for(const TargetSpec& target) const override {
    return {{"value", target.width}};
  }
  LossTerms do_forward(const std::vector<at::Tensor>& outputs, const Batch& batch) const override {
    const at::Tensor each = (outputs[0] - batch.targets).square().sum(1) / 2;
    if (!batch.weights.defined())
      return {each.sum(), {}};
    return {(each * batch.weights).sum(), batch.weights.sum()};
  }
  Predictions do_predictions(const std::vector<at::Tensor>& outputs) const override {
    return {TargetKind::kNumbers, outputs[0]};
  }
};

}  // namespace treadle::engine

#pragma once

#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/base/component.h>
#include <treadle/core/data/batch.h>
#include <treadle/core/data/target_spec.h>
#include <treadle/core/model/model_spec.h>
#include <treadle/core/validation/predictions.h>

namespace treadle {

/// A loss over some rows, before it is divided: the mean is sum / weight.
///
/// **Rationale:** sums and weights add up over shards, micro-batches and epochs; means do not. The
/// framework back-propagates `sum`, adds the weights in a fixed order and divides once, in the
/// update; ragged batches, padding and class weights are then exact.
struct LossTerms {
  at::Tensor sum;     ///< 0-dim, differentiable, the run's dtype
  at::Tensor weight;  ///< 0-dim, no gradient; undefined: the sum of the weights of all positions
};

/// A loss function: compares a model's outputs with one target. Training minimizes the weighted sum
/// of one or more of them (Objective).
///
/// One object serves a whole run; its functions are const and called from several threads at once.
class Loss : public Component {
 public:
  static constexpr std::string_view kInterface = "treadle.loss/0";

  ~Loss() override;

  /// The outputs a model must have for this target. Throws a DataError when the loss does not work
  /// on such a target (a classification loss on numbers), naming losses that do.
  std::vector<OutputSpec> outputs_for(const TargetSpec& target) const;

  /// `outputs` as outputs_for() returned them. Positions of weight 0 (padding) must not change the
  /// result.
  LossTerms forward(const std::vector<at::Tensor>& outputs, const TargetBatch& target) const;

  /// The divisor of forward()'s sum: a function of the target alone, so it is available before the
  /// forward pass. By default the sum of the weights of all positions. 0-dim, the dtype of the
  /// weights or float32.
  at::Tensor weight(const TargetBatch& target) const;

  /// The outputs as users read them. Called without gradients.
  Prediction prediction(const std::vector<at::Tensor>& outputs) const;

  /// False for a loss that is no sum over rows (a correlation): forward() then returns its value
  /// for exactly the given rows, with weight 1. Such a loss excludes shards and accumulation, and
  /// validation computes it once over all rows. Its schema declares `"x-treadle-additive": false`.
  bool is_additive() const;

 private:
  virtual std::vector<OutputSpec> do_outputs_for(const TargetSpec& target) const = 0;
  virtual LossTerms do_forward(const std::vector<at::Tensor>& outputs,
                               const TargetBatch& target) const = 0;
  virtual at::Tensor do_weight(const TargetBatch& target) const;
  virtual Prediction do_prediction(const std::vector<at::Tensor>& outputs) const = 0;
  virtual bool do_is_additive() const { return true; }
};

}  // namespace treadle

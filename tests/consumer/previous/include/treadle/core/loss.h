#pragma once

#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/base/component.h>
#include <treadle/core/batch.h>
#include <treadle/core/data_spec.h>
#include <treadle/core/model_spec.h>
#include <treadle/core/predictions.h>

namespace treadle {

/// A loss over some rows, before it is divided: the mean is sum / weight.
///
/// **Rationale:** sums and weights add up over shards, micro-batches and epochs, means do not. The
/// framework back-propagates `sum`, adds the weights in a fixed order and divides once, in the
/// update; ragged batches and class weights are then exact.
struct LossTerms {
  at::Tensor sum;     ///< 0-dim, differentiable, the run's dtype
  at::Tensor weight;  ///< 0-dim, no gradient; undefined means the number of rows
};

/// What training makes smaller. One object serves a whole run; forward() and predictions() are
/// const and called from several threads at once.
class Loss : public Component {
 public:
  static constexpr std::string_view kInterface = "treadle.loss/1";

  ~Loss() override;

  /// The outputs a model must have for this target. Throws a DataError when the loss does not work
  /// on such a target (a classification loss on numbers), saying which losses would.
  std::vector<OutputSpec> outputs_for(const TargetSpec& target) const;

  /// `outputs` as outputs_for() asked; batch.targets is defined, batch.weights may be.
  LossTerms forward(const std::vector<at::Tensor>& outputs, const Batch& batch) const;

  /// What the outputs mean: class probabilities, or numbers. Called without gradients.
  Predictions predictions(const std::vector<at::Tensor>& outputs) const;

 private:
  virtual std::vector<OutputSpec> do_outputs_for(const TargetSpec& target) const = 0;
  virtual LossTerms do_forward(const std::vector<at::Tensor>& outputs,
                               const Batch& batch) const = 0;
  virtual Predictions do_predictions(const std::vector<at::Tensor>& outputs) const = 0;
};

}  // namespace treadle

#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/base/config.h>
#include <treadle/core/loss.h>

namespace treadle::losses {

/// Softmax cross-entropy on class indices:
///
///     l(x, y) = w_y * ((1 - s) * -log p_y) + s/C * sum_c w_c * -log p_c,   p = softmax(x)
///
/// with class weights w (1 each by default), smoothing s and C classes. The mean divides by the sum
/// of w_y, as torch.nn.functional.cross_entropy does. Row weights multiply both.
///
/// One output "logits" [B, C]; predictions are softmax probabilities.
class CrossEntropy final : public Loss {
 public:
  explicit CrossEntropy(const Config& config);

 private:
  std::vector<OutputSpec> do_outputs_for(const TargetSpec& target) const override;
  LossTerms do_forward(const std::vector<at::Tensor>& outputs, const Batch& batch) const override;
  Predictions do_predictions(const std::vector<at::Tensor>& outputs) const override;

  Config config_;  // for messages about class_weights
  double label_smoothing_ = 0;
  at::Tensor class_weights_;    // float64 [C] on the CPU; undefined: 1 each
  at::Tensor class_weights_f_;  // the same as float32, so that no step has to convert them
};

/// Cross-entropy for two classes from one logit x, where class 1 is positive:
///
///     l(x, y) = pos_weight * y * log(1 + e^-x) + (1 - y) * log(1 + e^x)
///
/// computed in the stable form. The mean divides by the number of rows (or the sum of their
/// weights), never by pos_weight. One output "logit" [B, 1]; predictions [B, 2].
class BceWithLogits final : public Loss {
 public:
  explicit BceWithLogits(const Config& config);

 private:
  std::vector<OutputSpec> do_outputs_for(const TargetSpec& target) const override;
  LossTerms do_forward(const std::vector<at::Tensor>& outputs, const Batch& batch) const override;
  Predictions do_predictions(const std::vector<at::Tensor>& outputs) const override;

  at::Tensor pos_weight_;    // float64 [1]; undefined: 1
  at::Tensor pos_weight_f_;  // float32
};

}  // namespace treadle::losses

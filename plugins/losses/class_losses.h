#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/base/config.h>
#include <treadle/core/devices/device_constant.h>
#include <treadle/core/training/chunked_loss.h>
#include <treadle/core/training/fits_targets.h>
#include <treadle/core/training/loss.h>

#include "class_weights.h"

namespace treadle::losses {

/// Softmax cross-entropy, per position:
///
///     l(x, t) = sum_c w_c * ((1 - s) * t_c + s/C) * -log p_c,   p = softmax(x)
///
/// with class weights w (1 each by default), smoothing s and C classes; a class index y is the
/// distribution with t_y = 1, where the first weight is w_y. The mean divides by the sum of w_y for
/// classes and by the number of positions for distributions, as
/// torch.nn.functional.cross_entropy does. Weights of positions multiply both.
///
/// One output "logits" [B, positions..., C]; predictions are softmax probabilities.
class CrossEntropy final : public Loss, public FitsTargets, public ChunksOutputs {
 public:
  explicit CrossEntropy(const Config& config);

  std::int64_t num_output_chunks() const override { return num_output_chunks_; }

 private:
  std::vector<OutputSpec> do_outputs_for(const TargetSpec& target) const override;
  LossTerms do_forward(const std::vector<at::Tensor>& outputs,
                       const TargetBatch& target) const override;
  at::Tensor do_weight(const TargetBatch& target) const override;
  Prediction do_prediction(const std::vector<at::Tensor>& outputs) const override;
  void* do_ask(std::string_view interface_id) override;
  StateDict do_fit(const RowReader& data, const RowList& rows, std::size_t target) const override;
  std::unique_ptr<Loss> do_fitted(const StateDict& state) const override;

  Config config_;
  double label_smoothing_ = 0;
  std::int64_t num_output_chunks_ = 0;
  ClassWeights class_weights_;
};

/// Cross-entropy through a sigmoid, per logit x:
///
///     l(x, y) = pos_weight * y * log(1 + e^-x) + (1 - y) * log(1 + e^x)
///
/// computed in the stable form. The mean divides by the number of logits (times the weights of
/// their positions), never by pos_weight. Class weights multiply the weights of positions.
///
/// Two classes: one output "logit" [B, positions..., 1], the second class is positive; predictions
/// [B, positions..., 2]. Labels: "logits" [B, positions..., labels], a probability for each.
class BceWithLogits final : public Loss, public FitsTargets {
 public:
  explicit BceWithLogits(const Config& config);

 private:
  std::vector<OutputSpec> do_outputs_for(const TargetSpec& target) const override;
  LossTerms do_forward(const std::vector<at::Tensor>& outputs,
                       const TargetBatch& target) const override;
  at::Tensor do_weight(const TargetBatch& target) const override;
  Prediction do_prediction(const std::vector<at::Tensor>& outputs) const override;
  void* do_ask(std::string_view interface_id) override;
  StateDict do_fit(const RowReader& data, const RowList& rows, std::size_t target) const override;
  std::unique_ptr<Loss> do_fitted(const StateDict& state) const override;

  Config config_;
  ClassWeights class_weights_;
  DeviceConstant pos_weight_;  // [1 or labels]; undefined: 1
};

/// Kullback-Leibler divergence of the target t from the prediction, per position:
///
///     l(x, t) = sum_c t_c * (log t_c - log p_c),   p = softmax(x),   0 log 0 = 0
///
/// The mean divides by the number of positions: torch.nn.functional.kl_div(log p, t,
/// reduction="batchmean") with every position as a row. One output "logits" [B, positions..., C];
/// predictions are softmax probabilities.
class KlDiv final : public Loss {
 public:
  explicit KlDiv(const Config&) {}

 private:
  std::vector<OutputSpec> do_outputs_for(const TargetSpec& target) const override;
  LossTerms do_forward(const std::vector<at::Tensor>& outputs,
                       const TargetBatch& target) const override;
  Prediction do_prediction(const std::vector<at::Tensor>& outputs) const override;
};

}  // namespace treadle::losses

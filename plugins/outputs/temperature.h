#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/base/config.h>
#include <treadle/core/validation/output_stage.h>

namespace treadle::outputs {

/// softmax(z / T) or, for labels and two classes, sigmoid(z / T): T minimizes the negative
/// log-likelihood of held-out rows (C. Guo et al., "On Calibration of Modern Neural Networks",
/// ICML 2017). With `per_class`, softmax(z_c / T_c) of logits centered by their mean ("vector
/// scaling" without a bias).
///
/// The likelihood is concave in 1 / T, so the minimum is found by Newton's method; it is kept
/// within [0.01, 100], which rows that are all right, or all wrong, would leave.
class Temperature final : public OutputStage {
 public:
  explicit Temperature(const Config& config);

 private:
  void do_start(const TargetSpec& target) override;
  void do_fit(const Prediction& prediction, const TargetBatch& target) override;
  Prediction do_apply(Prediction prediction, const Batch& rows) const override;
  std::vector<MetricValue> do_learned() const override;
  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;

  const bool per_class_;
  TargetSpec target_;
  at::Tensor inverse_;  // 1 / T, float64 [1] or [C]
};

}  // namespace treadle::outputs

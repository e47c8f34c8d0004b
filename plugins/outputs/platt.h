#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/base/config.h>
#include <treadle/core/validation/output_stage.h>

namespace treadle::outputs {

/// sigmoid(a_c s_c + b_c) of the log-odds s_c of each class against the rest, or of the second of
/// two, or of each label. The rows of several classes are divided by their sum.
///
/// a and b maximize the likelihood of targets that are a little less than sure, (n+ + 1) / (n+ + 2)
/// and 1 / (n- + 2), by Newton's method (J. Platt, "Probabilistic Outputs for Support Vector
/// Machines", 1999; H.-T. Lin, C.-J. Lin, R. Weng, "A Note on Platt's Probabilistic Outputs",
/// Machine Learning 68, 2007): scikit-learn's method="sigmoid".
class Platt final : public OutputStage {
 public:
  explicit Platt(const Config& config);

 private:
  void do_start(const TargetSpec& target) override;
  void do_expect_enough(const TargetBatch& target) const override;
  void do_fit(const Prediction& prediction, const TargetBatch& target) override;
  Prediction do_apply(Prediction prediction, const Batch& rows) const override;
  std::vector<MetricValue> do_learned() const override;
  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;

  TargetSpec target_;
  at::Tensor lines_;  // float64 [2, K]: slopes and intercepts
};

}  // namespace treadle::outputs

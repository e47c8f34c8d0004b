#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/base/config.h>
#include <treadle/core/validation/output_stage.h>

namespace treadle::outputs {

/// A non-decreasing function of the probability of each class against the rest, or of the second of
/// two, or of each label: the least squares fit to held-out rows by pooling adjacent violators (R.
/// Barlow et al., "Statistical Inference under Order Restrictions", 1972), linear between its
/// points, and constant beyond them: scikit-learn's method="isotonic". The rows of several classes
/// are divided by their sum; where all are 0, each class gets the same.
class Isotonic final : public OutputStage {
 public:
  explicit Isotonic(const Config& config);

 private:
  /// A function through points, x ascending: float64 [P] each.
  struct Steps {
    at::Tensor x;
    at::Tensor y;
  };

  void do_start(const TargetSpec& target) override;
  void do_expect_enough(const TargetBatch& target) const override;
  void do_fit(const Prediction& prediction, const TargetBatch& target) override;
  Prediction do_apply(Prediction prediction, const Batch& rows) const override;
  std::vector<MetricValue> do_learned() const override;
  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;

  std::int64_t columns() const;
  static Steps least_squares(const at::Tensor& x, const at::Tensor& y, const at::Tensor& weights);
  static at::Tensor at_points(const Steps& steps, const at::Tensor& x);

  TargetSpec target_;
  std::vector<Steps> steps_;  // by column
};

}  // namespace treadle::outputs

#pragma once

#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/base/config.h>
#include <treadle/core/validation/metric_computer.h>

#include "class_counts.h"

namespace treadle::metrics {

/// `mcc`: the Matthews correlation coefficient of actual and predicted classes, from -1 to 1; of
/// more than two classes R_K (J. Gorodkin, "Comparing two K-category assignments by a K-category
/// correlation coefficient", 2004):
///
///     (c s - sum_k t_k p_k) / sqrt((s^2 - sum_k p_k^2) (s^2 - sum_k t_k^2))
///
/// with c the weight of right rows, s that of all, t_k and p_k those of actual and predicted class
/// k. 0 where all rows are predicted to be of one class; undefined where all are of one.
class Mcc final : public ClassCountsMetric {
 public:
  explicit Mcc(const Config&) : ClassCountsMetric("mcc", /*takes_labels=*/false) {}

 private:
  MetricResult do_compute() const override;
};

/// `balanced_accuracy`: the mean of the recall of each class that occurs among the targets.
class BalancedAccuracy final : public ClassCountsMetric {
 public:
  explicit BalancedAccuracy(const Config&)
      : ClassCountsMetric("balanced_accuracy", /*takes_labels=*/false) {}

 private:
  MetricResult do_compute() const override;
};

/// `cohen_kappa`: agreement of actual and predicted classes beyond chance (J. Cohen, 1960), and
/// with "weights" how far apart they are (1968):
///
///     1 - sum_ij w_ij observed_ij / sum_ij w_ij expected_ij
///
/// w_ij is 1 for i != j, or |i - j| ("linear"), or its square ("quadratic"), in the order of the
/// target's classes. Undefined where all rows are of one class and predicted to be of it. Memory:
/// five numbers a class, no matrix.
class CohenKappa final : public ClassCountsMetric {
 public:
  explicit CohenKappa(const Config& config);

  /// The weight of two classes `distance` apart, and the sum of these weights over pairs of an
  /// actual and a predicted class, each with the product of their counts.
  struct Disagreement {
    std::string_view name;
    at::Tensor (*of)(const at::Tensor& distances);
    double (*by_chance)(const std::vector<Counts>& counts);
  };

 private:
  void do_reset() override;
  void do_update(const Prediction& prediction, const TargetBatch& target) override;
  void do_merge(const MetricComputer& other) override;
  MetricResult do_compute() const override;
  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;

  const Disagreement* disagreement_;
  double observed_ = 0;
};

}  // namespace treadle::metrics

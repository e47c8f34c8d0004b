#pragma once

#include <initializer_list>
#include <string_view>

#include <ATen/core/Tensor.h>

#include <treadle/base/config.h>
#include <treadle/core/validation/metric_computer.h>

#include "positions.h"

namespace treadle::metrics {

/// -log p(right class), or of a distribution t -sum_c t_c log p_c: float64 [N]. p is kept within
/// [eps, 1 - eps], eps the machine epsilon of the predictions' dtype, as in scikit-learn.
at::Tensor minus_log_likelihood(const Positions& positions);

/// One metric that is a mean over positions.
struct PositionScore {
  std::string_view name;
  std::initializer_list<TargetKind> kinds;
  /// float64 [N]
  at::Tensor (*each)(const Positions& positions);
  double (*of_mean)(double mean) = nullptr;  ///< null: the mean itself
};

/// A mean over positions, lower is better. Memory: two numbers.
class PositionMetric : public MetricComputer {
 public:
  explicit PositionMetric(const PositionScore& score) : score_(score) {}

 private:
  void do_start(const TargetSpec& target) override;
  void do_reset() override;
  void do_update(const Prediction& prediction, const TargetBatch& target) override;
  void do_merge(const MetricComputer& other) override;
  MetricResult do_compute() const override;
  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;

  const PositionScore& score_;
  double sum_ = 0;
  double weight_ = 0;
};

/// The mean of minus_log_likelihood().
extern const PositionScore kLogLoss;
/// exp of the log loss of classes.
extern const PositionScore kPerplexity;
/// sum_c t_c (log t_c - log p_c), p kept as for the log loss; 0 log 0 is 0.
extern const PositionScore kKlDiv;
/// The share of labels that are wrong, a label being present where its probability is above one
/// half.
extern const PositionScore kHammingLoss;
/// The Brier score: of two classes the mean of (p - y)^2, with p that of the second one and y 1
/// where it is right; of more the mean of sum_c (p_c - y_c)^2.
extern const PositionScore kBrier;

template <const PositionScore& kScore>
class PositionMetricOf final : public PositionMetric {
 public:
  explicit PositionMetricOf(const Config&) : PositionMetric(kScore) {}
};

}  // namespace treadle::metrics

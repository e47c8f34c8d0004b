#pragma once

#include <string_view>

#include <ATen/core/Tensor.h>

#include <treadle/base/config.h>
#include <treadle/core/validation/metric_computer.h>

#include "quantile_extras.h"

namespace treadle::metrics {

/// A metric that is a sum over positions divided by another one.
struct RatioScore {
  std::string_view name;
  at::Tensor (*above)(const at::Tensor& predicted, const at::Tensor& actual);
  at::Tensor (*below)(const at::Tensor& actual);
  const char* nothing_below;  ///< why there is no value where the divisor is 0
};

/// In float64. With several numbers a position the value is the mean of the values of each.
/// Undefined where a divisor is 0.
class RatioMetric : public MetricComputer {
 public:
  explicit RatioMetric(const RatioScore& score);

 private:
  void do_start(const TargetSpec& target) override;
  void do_reset() override;
  void do_update(const Prediction& prediction, const TargetBatch& target) override;
  void do_merge(const MetricComputer& other) override;
  MetricResult do_compute() const override;
  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;

  RatioScore score_;
  at::Tensor above_;  // float64 [width]
  at::Tensor below_;  // likewise
};

/// 200 mean(|x - y| / (|x| + |y|)), in percent, from 0 to 200; 0 where both are 0. (S. Makridakis,
/// "Accuracy measures", 1993, as the M4 competition defines it.)
extern const RatioScore kSmape;
/// mean(|x - y| / max(|y|, eps)), as a share and not in percent, eps the machine epsilon of
/// float64: targets of 0 make it huge. (scikit-learn: mean_absolute_percentage_error.)
extern const RatioScore kMape;
/// sum |x - y| / sum |y|.
extern const RatioScore kWape;

template <const RatioScore& kScore>
class RatioMetricOf final : public RatioMetric {
 public:
  explicit RatioMetricOf(const Config&) : RatioMetric(kScore) {}
};

/// `interval_score`: of the interval between two predicted quantiles l and u, for targets y, with
/// a = 1 - (upper - lower):
///
///     (u - l) + 2/a (l - y) [y < l] + 2/a (y - u) [y > u]
///
/// (T. Gneiting and A. E. Raftery, "Strictly Proper Scoring Rules, Prediction, and Estimation",
/// 2007, section 6.2.) Beside it "interval_coverage", the share of targets within the interval,
/// both ends included, and "interval_width", its mean.
class IntervalScore final : public MetricComputer {
 public:
  explicit IntervalScore(const Config& config);

 private:
  void do_start(const TargetSpec& target) override;
  void do_reset() override;
  void do_update(const Prediction& prediction, const TargetBatch& target) override;
  void do_merge(const MetricComputer& other) override;
  MetricResult do_compute() const override;
  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;

  QuantileExtras ends_;
  double score_ = 0;  // sums over positions, of the mean over the width
  double covered_ = 0;
  double extent_ = 0;
  double weight_ = 0;
};

}  // namespace treadle::metrics

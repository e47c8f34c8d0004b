#pragma once

#include <vector>

#include <treadle/base/config.h>
#include <treadle/core/validation/metric_computer.h>

#include "quantile_extras.h"

namespace treadle::metrics {

/// `quantile_coverage`: whether predicted quantiles keep what they promise. For each of "quantiles"
/// the share of targets at or below it, "quantile_coverage.q0.9", which should be its level; and
/// with two or more "quantile_coverage": the share within the lowest and the highest, both
/// included, which should be the difference of their levels. Memory: a number a quantile.
class QuantileCoverage final : public MetricComputer {
 public:
  explicit QuantileCoverage(const Config& config);

 private:
  void do_start(const TargetSpec& target) override;
  void do_reset() override;
  void do_update(const Prediction& prediction, const TargetBatch& target) override;
  void do_merge(const MetricComputer& other) override;
  MetricResult do_compute() const override;
  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;

  QuantileExtras quantiles_;
  std::vector<double> below_;  // per quantile, sums over positions of the mean over the width
  double within_ = 0;
  double weight_ = 0;
};

}  // namespace treadle::metrics

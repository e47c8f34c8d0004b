#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/base/config.h>
#include <treadle/core/metric_computer.h>

namespace treadle::metrics {

/// The pinball loss of predicted quantiles, from a prediction's extras ("q0.1"); the median may be
/// the prediction itself:
///
///     max(q * d, (q - 1) * d),   d = target - quantile
///
/// "pinball" is the mean over positions, width and quantiles, "pinball.q0.1" that of one quantile,
/// "coverage" the share of targets within the lowest and the highest quantile, both included.
/// Memory: a number a quantile.
class Pinball final : public MetricComputer {
 public:
  explicit Pinball(const Config& config);

 private:
  void do_start(const TargetSpec& target) override;
  void do_reset() override;
  void do_update(const Prediction& prediction, const TargetBatch& target) override;
  void do_merge(const MetricComputer& other) override;
  MetricResult do_compute() const override;
  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;

  const at::Tensor& quantile_of(const Prediction& prediction, std::size_t quantile) const;

  std::vector<double> quantiles_;   // ascending
  std::vector<std::string> names_;  // "q0.1"
  std::vector<double> sums_;        // per quantile, of the mean over the width
  double covered_ = 0;
  double weight_ = 0;
};

}  // namespace treadle::metrics

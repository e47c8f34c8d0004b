#pragma once

#include <ATen/core/Tensor.h>

#include <treadle/base/config.h>
#include <treadle/core/validation/metric_computer.h>

namespace treadle::metrics {

/// `deviation`: how far predictions p are from targets y, in percent:
///
///     100 |(p - y) / y|,   of |y| < 1e-10: 100 |p - y|,   where that is not finite: 100
///
/// "deviation" is its mean, "deviation_quality" the mean of max(0, 100 - deviation), and
/// "deviation_failures" the weight of the numbers above 100. The table "deviation_buckets" counts
/// them in seven buckets, whose upper bounds are included. With several numbers a position values
/// are means over them, failures and buckets a sum. Memory: ten numbers.
class Deviation final : public MetricComputer {
 public:
  explicit Deviation(const Config&) {}

 private:
  void do_start(const TargetSpec& target) override;
  void do_reset() override;
  void do_update(const Prediction& prediction, const TargetBatch& target) override;
  void do_merge(const MetricComputer& other) override;
  MetricResult do_compute() const override;
  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;

  double deviation_ = 0;  // sums over positions, of the mean over the width
  double quality_ = 0;
  double weight_ = 0;
  at::Tensor buckets_;  // float64 [7]
};

}  // namespace treadle::metrics

#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/base/config.h>
#include <treadle/core/validation/metric_computer.h>

namespace treadle::outputs {

/// Of what "conformal" adds to predictions: the share of positions whose truth is inside
/// ("coverage"), and the mean width of intervals ("width") or number of classes in a set
/// ("set_size"). Undefined without the extras.
class Coverage final : public MetricComputer {
 public:
  explicit Coverage(const Config& config);

 private:
  void do_start(const TargetSpec& target) override;
  void do_reset() override;
  void do_update(const Prediction& prediction, const TargetBatch& target) override;
  void do_merge(const MetricComputer& other) override;
  MetricResult do_compute() const override;
  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;

  bool is_classes_ = false;
  at::Tensor sums_;  // float64 [3]: weights of what is inside, times sizes, and of all
};

}  // namespace treadle::outputs

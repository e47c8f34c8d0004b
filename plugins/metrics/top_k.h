#pragma once

#include <cstdint>

#include <treadle/base/config.h>
#include <treadle/core/validation/metric_computer.h>

namespace treadle::metrics {

/// `top_k_accuracy`: the share of positions whose right class is among the `k` first. The class
/// decided for is the first (see decided()); the others follow by their probability, of equal ones
/// that with the lower index. With k = 1 it is `accuracy`. Memory: two numbers.
class TopKAccuracy final : public MetricComputer {
 public:
  explicit TopKAccuracy(const Config& config);

 private:
  /// Throws DocumentError unless k is below the number of classes.
  void do_start(const TargetSpec& target) override;
  void do_reset() override;
  void do_update(const Prediction& prediction, const TargetBatch& target) override;
  void do_merge(const MetricComputer& other) override;
  MetricResult do_compute() const override;
  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;

  Config config_;
  std::int64_t k_;
  double hits_ = 0;
  double weight_ = 0;
};

}  // namespace treadle::metrics

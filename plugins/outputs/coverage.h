#pragma once

#include <string>

#include <ATen/core/Tensor.h>

#include <treadle/base/config.h>
#include <treadle/core/validation/metric_computer.h>

namespace treadle::outputs {

/// Of what "conformal" adds to predictions: the share of positions whose truth is inside, and how
/// large it is on average. Undefined without the extras. Memory: three numbers.
class Coverage : public MetricComputer {
 protected:
  /// Of each position: 1 where the truth is inside, and a size. Both float64 [N].
  struct Inside {
    at::Tensor is_inside;
    at::Tensor size;
  };

  Coverage(std::string share, std::string size)
      : share_(std::move(share)), size_(std::move(size)) {}

 private:
  /// Undefined tensors where there are no intervals or sets.
  virtual Inside inside(const Prediction& prediction, const TargetBatch& target) const = 0;

  void do_reset() override;
  void do_update(const Prediction& prediction, const TargetBatch& target) override;
  void do_merge(const MetricComputer& other) override;
  MetricResult do_compute() const override;
  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;

  const std::string share_;
  const std::string size_;
  at::Tensor sums_;  // float64 [3]: weights inside, weights times sizes, all weights
};

/// "interval_coverage" and "interval_width". Of several numbers at a position their mean.
class IntervalCoverage final : public Coverage {
 public:
  explicit IntervalCoverage(const Config& config);

 private:
  void do_start(const TargetSpec& target) override;
  Inside inside(const Prediction& prediction, const TargetBatch& target) const override;
};

/// "set_coverage" and "set_size".
class SetCoverage final : public Coverage {
 public:
  explicit SetCoverage(const Config& config);

 private:
  void do_start(const TargetSpec& target) override;
  Inside inside(const Prediction& prediction, const TargetBatch& target) const override;
};

}  // namespace treadle::outputs

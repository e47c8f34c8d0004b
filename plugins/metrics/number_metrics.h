#pragma once

#include <string_view>

#include <ATen/core/Tensor.h>

#include <treadle/base/config.h>
#include <treadle/core/validation/metric_computer.h>

namespace treadle::metrics {

/// One metric that is a mean over errors.
struct ErrorScore {
  std::string_view name;
  at::Tensor (*penalty)(const at::Tensor& differences);
  double (*of_mean)(double mean);
};

/// Mean over positions of a penalty on prediction - target, in float64. With several numbers a
/// position the value is the mean of the values of each, as in scikit-learn.
class ErrorMetric : public MetricComputer {
 public:
  explicit ErrorMetric(const ErrorScore& score);

 private:
  void do_start(const TargetSpec& target) override;
  void do_reset() override;
  void do_update(const Prediction& prediction, const TargetBatch& target) override;
  void do_merge(const MetricComputer& other) override;
  MetricResult do_compute() const override;
  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;

  ErrorScore score_;
  at::Tensor sums_;  // float64 [width]
  double weight_ = 0;
};

extern const ErrorScore kMse;
extern const ErrorScore kRmse;
extern const ErrorScore kMae;

template <const ErrorScore& kScore>
class ErrorMetricOf final : public ErrorMetric {
 public:
  explicit ErrorMetricOf(const Config&) : ErrorMetric(kScore) {}
};

/// 1 - (squared errors) / (squared deviations of the target from its mean). Constant targets give 1
/// when all predictions are exact, else 0; of fewer than two positions it is undefined; several
/// numbers a position: the mean of each (scikit-learn's r2_score).
///
/// The deviations are merged batch by batch (Chan, Golub & LeVeque 1979), so a mean far from 0
/// costs no digits.
class R2 final : public MetricComputer {
 public:
  explicit R2(const Config& config);

 private:
  void do_start(const TargetSpec& target) override;
  void do_reset() override;
  void do_update(const Prediction& prediction, const TargetBatch& target) override;
  void do_merge(const MetricComputer& other) override;
  MetricResult do_compute() const override;
  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;

  struct Moments {
    at::Tensor errors;      // float64 [width]: sum of squared errors
    at::Tensor mean;        // float64 [width]: of the targets
    at::Tensor deviations;  // float64 [width]: sum of squared deviations from `mean`
    double weight = 0;
    std::int64_t count = 0;
  };

  void add(const Moments& more);

  Moments moments_;
};

}  // namespace treadle::metrics

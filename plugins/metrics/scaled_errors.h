#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/base/config.h>
#include <treadle/core/data/abilities/fits_training_rows.h>
#include <treadle/core/validation/metric_computer.h>

#include "number_metrics.h"

namespace treadle::metrics {

/// An error beside that of the seasonal naive forecast, y[t - period], on the training rows of the
/// same series.
///
/// For each series the mean penalty of its positions, divided by the mean penalty that
/// y[t] - y[t - period] has over pairs of its training rows; then the mean over series (and over
/// the numbers of a vector). Where a row is not a training row, or its target has the weight 0
/// (missing), its pairs are left out. Weights count among the positions, not among the pairs.
///
/// A series whose naive forecast is exact has no scale and is left out; one without two training
/// rows so far apart is an error, since nothing says what its errors are worth.
///
/// Sources: R. J. Hyndman and A. B. Koehler, "Another look at measures of forecast accuracy" (2006)
/// for MASE; the M5 competition's guide (2020) for RMSSE. In float64.
class ScaledMetric : public MetricComputer, public FitsTrainingRows {
 public:
  ScaledMetric(const ErrorScore& score, const Config& config);

 private:
  void do_start(const TargetSpec& target) override;
  void do_reset() override;
  void do_update(const Prediction& prediction, const TargetBatch& target) override;
  void do_merge(const MetricComputer& other) override;
  MetricResult do_compute() const override;
  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;
  StateDict do_fit(const RowReader& data, const RowList& rows, std::size_t target) const override;
  void do_use(const StateDict& fitted, const at::Tensor& groups) override;
  void* do_ask(std::string_view interface_id) override;

  /// The place of a series in the tensors below, which grow by a row where it is new.
  std::int64_t place_of(std::int64_t group);

  ErrorScore score_;
  std::int64_t period_;
  std::int64_t width_ = 0;
  std::vector<std::int64_t> groups_;                       // of the series, by place
  std::unordered_map<std::int64_t, std::int64_t> places_;  // by group
  at::Tensor scales_;          // float64 [series, width]; NaN: not known, 0: none
  at::Tensor sums_;            // float64 [series, width]: weights times penalties by their scale
  at::Tensor weights_;         // float64 [series, width]
  at::Tensor series_of_rows_;  // int64 [N], -1: unknown; undefined: all are of the only series
};

/// mean |e| / mean |y[t] - y[t - period]|.
extern const ErrorScore kMase;
/// sqrt(mean e^2 / mean (y[t] - y[t - period])^2).
extern const ErrorScore kRmsse;

template <const ErrorScore& kScore>
class ScaledMetricOf final : public ScaledMetric {
 public:
  explicit ScaledMetricOf(const Config& config) : ScaledMetric(kScore, config) {}
};

}  // namespace treadle::metrics

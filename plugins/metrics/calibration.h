#pragma once

#include <cstdint>
#include <string_view>

#include <ATen/core/Tensor.h>

#include <treadle/base/config.h>
#include <treadle/core/validation/metric_computer.h>

#include "kept_scores.h"

namespace treadle::metrics {

/// Positions in bins of their confidence: the probability of the class decided for.
///
/// "bins": their number. "strategy": "uniform" bins are equally wide; "quantile" bins have equal
/// weight, as far as equal confidences allow, which share a bin. The upper edge belongs to a bin,
/// as in scikit-learn's calibration_curve.
///
/// A base: `ece` and `reliability` differ in their results only. Memory: uniform bins three numbers
/// each. Quantile bins take all confidences, which grow with the positions as the scores of Auc do:
/// no edge is known before the last of them.
class CalibrationMetric : public MetricComputer {
 public:
  /// `name` is the component's, of static storage.
  CalibrationMetric(const Config& config, std::string_view name);

 protected:
  /// float64 [3, bins]: of each bin the sum of weights times confidence, that of weights of right
  /// positions, that of weights.
  at::Tensor sums() const;

 private:
  void do_start(const TargetSpec& target) override;
  void do_reset() override;
  void do_update(const Prediction& prediction, const TargetBatch& target) override;
  void do_merge(const MetricComputer& other) override;
  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;

  std::string_view name_;
  std::int64_t bins_;
  bool by_quantiles_ = false;
  at::Tensor sums_;  // of uniform bins
  KeptScores seen_;  // for quantile bins: confidence [N, 1], and whether it is right
};

/// `ece`: the expected calibration error, sum over bins of their share of the weight times
/// |share that is right - mean confidence|. (C. Guo et al., "On Calibration of Modern Neural
/// Networks", 2017.)
class Ece final : public CalibrationMetric {
 public:
  explicit Ece(const Config& config) : CalibrationMetric(config, "ece") {}

 private:
  MetricResult do_compute() const override;
};

/// `reliability`: a table with a row for each bin that has weight: "confidence", its mean;
/// "accuracy", the share that is right; "weight".
class Reliability final : public CalibrationMetric {
 public:
  explicit Reliability(const Config& config) : CalibrationMetric(config, "reliability") {}

 private:
  MetricResult do_compute() const override;
};

}  // namespace treadle::metrics

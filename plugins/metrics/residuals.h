#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/base/config.h>
#include <treadle/core/validation/metric_computer.h>

namespace treadle::metrics {

/// How often differences fall where, without knowing their range beforehand.
///
/// Bins are [i * 2^k, (i + 1) * 2^k) for whole i; k is the smallest for which the range seen so far
/// needs at most kBins bins. A grown range merges bins in pairs, which is exact: the result is that
/// of binning everything at the end, and does not depend on the order. Values that are not finite
/// are left out.
class Histogram {
 public:
  static constexpr std::int64_t kBins = 40;

  /// `values` float64 [rows]; `weights` float64 [rows] or undefined.
  void add(at::Tensor values, at::Tensor weights);
  void merge(const Histogram& other);

  /// float64 [bins, 3]: from, to, weight.
  at::Tensor table() const;

  StateDict state() const;
  static Histogram from_state(const StateDict& state);

 private:
  void widen(double low, double high);
  void grow_to(std::int64_t first, std::int64_t last);

  bool empty_ = true;
  double low_ = 0;
  double high_ = 0;
  int exponent_ = 0;        // k
  std::int64_t first_ = 0;  // index of counts_[0]
  std::vector<double> counts_;
};

/// For the report of a regression, per number of the target: a table "residual_sample" with up to
/// kSample pairs of actual and predicted value, and a table "residual_histogram" of actual -
/// predicted. With several numbers a row the tables are "residual_sample.0", "residual_sample.1", …
///
/// The sample is chosen by a hash of the row's index: always the same rows, whatever the batches or
/// the number of workers. Memory is bounded.
class Residuals final : public MetricComputer {
 public:
  static constexpr std::size_t kSample = 500;

  explicit Residuals(const Config& config);

 private:
  void do_start(const TargetSpec& target) override;
  void do_reset() override;
  void do_update(const Prediction& prediction, const TargetBatch& target) override;
  void do_merge(const MetricComputer& other) override;
  MetricResult do_compute() const override;
  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;

  struct SampledRow {
    std::int64_t row = 0;
    std::vector<double> numbers;  // actual, predicted, actual, predicted, …
  };

  void sample(const at::Tensor& rows, const at::Tensor& actual, const at::Tensor& predicted);
  void keep(std::uint64_t hash, SampledRow row);

  std::int64_t width_ = 0;
  std::map<std::uint64_t, SampledRow> sample_;  // the kSample smallest hashes
  std::vector<Histogram> histograms_;           // one per number
};

}  // namespace treadle::metrics

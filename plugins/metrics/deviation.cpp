#include "deviation.h"

#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/bincount.h>
#include <ATen/ops/bucketize.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include "positions.h"
#include "target_check.h"

namespace treadle::metrics {
namespace {

constexpr double kWhole = 100;      // percent
constexpr double kNothing = 1e-10;  // a target this small has no percentages

at::Tensor deviations(const at::Tensor& predicted, const at::Tensor& actual) {
  const at::Tensor errors = predicted - actual;
  const at::Tensor percent =
      kWhole * at::where(actual.abs() < kNothing, errors, errors / actual).abs();
  return percent.masked_fill(percent.isfinite().logical_not(), kWhole);
}

const std::vector<std::string>& bucket_names() {
  static const std::vector<std::string> names{"0-10%",  "10-20%",  "20-30%", "30-40%",
                                              "40-50%", "50-100%", "100%+"};
  return names;
}

at::Tensor bucket_edges() {
  return at::tensor({10.0, 20.0, 30.0, 40.0, 50.0, kWhole}, at::kDouble);
}

}  // namespace

void Deviation::do_start(const TargetSpec& target) {
  expect_numbers("deviation", target);
}

void Deviation::do_reset() {
  deviation_ = 0;
  quality_ = 0;
  weight_ = 0;
  buckets_ = at::zeros({static_cast<std::int64_t>(bucket_names().size())}, at::kDouble);
}

void Deviation::do_update(const Prediction& prediction, const TargetBatch& target) {
  const Positions positions(prediction, target);
  const at::Tensor& weights = positions.weights();
  const at::Tensor each =
      deviations(positions.predicted().to(at::kDouble), positions.actual().to(at::kDouble));
  deviation_ += weighted_sum(each.mean(1), weights).item<double>();
  quality_ += weighted_sum((kWhole - each).clamp_min(0).mean(1), weights).item<double>();
  weight_ += positions.total_weight();
  const at::Tensor bucket = at::bucketize(each.contiguous(), bucket_edges()).reshape(-1);
  const at::Tensor of_each = weights.defined()
                                 ? weights.unsqueeze(1).expand(each.sizes()).reshape(-1)
                                 : at::ones({bucket.size(0)}, at::kDouble);
  buckets_.add_(at::bincount(bucket, of_each, buckets_.size(0)));
}

void Deviation::do_merge(const MetricComputer& other) {
  const auto& theirs = static_cast<const Deviation&>(other);
  deviation_ += theirs.deviation_;
  quality_ += theirs.quality_;
  weight_ += theirs.weight_;
  buckets_.add_(theirs.buckets_);
}

MetricResult Deviation::do_compute() const {
  const double failures = buckets_[-1].item<double>();
  MetricResult result;
  result.values = {
      {"deviation", weighted_mean(deviation_, weight_), Direction::kLowerIsBetter},
      {"deviation_quality", weighted_mean(quality_, weight_), Direction::kHigherIsBetter},
      {"deviation_failures", weight_ > 0 ? Number(failures) : weighted_mean(0, 0),
       Direction::kLowerIsBetter}};
  result.tables.push_back(
      {"deviation_buckets", bucket_names(), {"count"}, buckets_.unsqueeze(1).clone()});
  return result;
}

StateDict Deviation::do_state() const {
  StateDict state;
  state.put_number("deviation", deviation_);
  state.put_number("quality", quality_);
  state.put_number("weight", weight_);
  state.put("buckets", buckets_);
  return state;
}

void Deviation::do_load_state(const StateDict& state) {
  deviation_ = state.number("deviation");
  quality_ = state.number("quality");
  weight_ = state.number("weight");
  buckets_ = state.tensor("buckets").clone();
}

}  // namespace treadle::metrics

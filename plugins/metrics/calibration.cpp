#include "calibration.h"

#include <algorithm>
#include <array>
#include <string>
#include <tuple>
#include <utility>

#include <ATen/ops/arange.h>
#include <ATen/ops/bincount.h>
#include <ATen/ops/bucketize.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <treadle/base/error.h>

#include "positions.h"
#include "target_check.h"

namespace treadle::metrics {
namespace {

constexpr std::int64_t kDefaultBins = 15;
constexpr std::array<std::pair<std::string_view, bool>, 2> kStrategies{
    {{"uniform", false}, {"quantile", true}}};

/// The sums of bins between inner `edges`, of which each belongs to the bin below it. All float64
/// [N].
at::Tensor binned(const at::Tensor& confidences, const at::Tensor& right, const at::Tensor& weights,
                  const at::Tensor& edges) {
  const std::int64_t bins = edges.size(0) + 1;
  const at::Tensor bin = at::bucketize(confidences.contiguous(), edges);
  return at::stack({at::bincount(bin, confidences.mul(weights), bins),
                    at::bincount(bin, right.mul(weights), bins), at::bincount(bin, weights, bins)});
}

/// i / bins for i = 1 ... bins - 1, rounded as by numpy.linspace.
at::Tensor uniform_edges(std::int64_t bins) {
  return at::arange(1, bins, at::kDouble).mul(1 / static_cast<double>(bins));
}

/// The smallest confidences at or below which there are i / bins of the weight.
at::Tensor quantile_edges(const at::Tensor& confidences, const at::Tensor& weights,
                          std::int64_t bins) {
  const auto [sorted, order] = at::sort(confidences);
  const at::Tensor below = weights.index_select(0, order).cumsum(0);
  const at::Tensor shares =
      at::arange(1, bins, at::kDouble).mul(below[-1]).div(static_cast<double>(bins));
  const at::Tensor places = at::searchsorted(below, shares).clamp_max(sorted.size(0) - 1);
  return sorted.index_select(0, places);
}

}  // namespace

CalibrationMetric::CalibrationMetric(const Config& config, std::string_view name)
    : name_(name), bins_(config.get_or<std::int64_t>("bins", kDefaultBins)) {
  if (bins_ < 1)
    config.fail("bins", "must be at least 1");
  const auto strategy = config.get_or<std::string>("strategy", "uniform");
  const auto* const found = std::find_if(kStrategies.begin(), kStrategies.end(),
                                         [&](const auto& one) { return one.first == strategy; });
  if (found == kStrategies.end())
    config.fail("strategy", "must be \"uniform\" or \"quantile\"");
  by_quantiles_ = found->second;
}

void CalibrationMetric::do_start(const TargetSpec& target) {
  expect_classes(name_, target);
  sums_ = at::zeros({3, bins_}, at::kDouble);
}

void CalibrationMetric::do_reset() {
  sums_.zero_();
  seen_.clear();
}

void CalibrationMetric::do_update(const Prediction& prediction, const TargetBatch& target) {
  const Positions positions(prediction, target);
  const at::Tensor decided = positions.decided();
  const at::Tensor confidences = positions.predicted().gather(1, decided.unsqueeze(1));
  const at::Tensor right = at::eq(decided, positions.actual());
  if (by_quantiles_)
    return seen_.add(confidences, right.to(at::kLong), positions.weights());
  sums_.add_(binned(
      confidences.squeeze(1).to(at::kDouble), right.to(at::kDouble),
      positions.weights().defined() ? positions.weights() : at::ones({right.size(0)}, at::kDouble),
      uniform_edges(bins_)));
}

void CalibrationMetric::do_merge(const MetricComputer& other) {
  const auto& theirs = static_cast<const CalibrationMetric&>(other);
  sums_.add_(theirs.sums_);
  seen_.append(theirs.seen_);
}

at::Tensor CalibrationMetric::sums() const {
  const KeptScores::Rows rows = seen_.rows();
  if (!rows.scores.defined() || rows.scores.size(0) == 0)
    return sums_;
  const at::Tensor confidences = rows.scores.squeeze(1).to(at::kDouble);
  const at::Tensor weights =
      rows.weights.defined() ? rows.weights : at::ones({confidences.size(0)}, at::kDouble);
  return binned(confidences, rows.actual.to(at::kDouble), weights,
                quantile_edges(confidences, weights, bins_));
}

StateDict CalibrationMetric::do_state() const {
  StateDict state = seen_.state();
  state.put("sums", sums_);
  return state;
}

void CalibrationMetric::do_load_state(const StateDict& state) {
  const at::Tensor& stored = state.tensor("sums");
  if (stored.sizes() != sums_.sizes())
    throw StorageError("the saved metric has another number of bins");
  sums_.copy_(stored);
  seen_.load_state(state);
}

MetricResult Ece::do_compute() const {
  const at::Tensor all = sums();
  const double gaps = all[0].sub(all[1]).abs().sum().item<double>();
  return {{{"ece", weighted_mean(gaps, all[2].sum().item<double>()), Direction::kLowerIsBetter}},
          {}};
}

MetricResult Reliability::do_compute() const {
  const at::Tensor all = sums();
  const at::Tensor some = all.index_select(1, all[2].nonzero().squeeze(1));
  MetricResult result;
  result.tables.push_back({"reliability",
                           {},
                           {"confidence", "accuracy", "weight"},
                           at::stack({some[0].div(some[2]), some[1].div(some[2]), some[2]}, 1)});
  return result;
}

}  // namespace treadle::metrics

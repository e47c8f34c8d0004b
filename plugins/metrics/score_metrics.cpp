#include "score_metrics.h"

#include <cmath>
#include <limits>
#include <string>

#include <ATen/ops/full_like.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/xlogy.h>

#include "target_check.h"

namespace treadle::metrics {
namespace {

at::Tensor logs_of(const at::Tensor& probabilities) {
  const double eps = probabilities.scalar_type() == at::kDouble
                         ? std::numeric_limits<double>::epsilon()
                         : std::numeric_limits<float>::epsilon();
  return probabilities.to(at::kDouble).clamp(eps, 1 - eps).log();
}

at::Tensor divergence(const Positions& positions) {
  const at::Tensor actual = positions.actual().to(at::kDouble);
  return at::xlogy(actual, actual).sub(logs_of(positions.predicted()).mul(actual)).sum(1);
}

at::Tensor share_of_wrong_labels(const Positions& positions) {
  return at::ne(positions.decided(), positions.actual().gt(0.5)).to(at::kDouble).mean(1);
}

at::Tensor squares(const Positions& positions) {
  const at::Tensor predicted = positions.predicted().to(at::kDouble);
  const at::Tensor actual = positions.actual().unsqueeze(1);
  if (predicted.size(1) == 2)
    return predicted.narrow(1, 1, 1).sub(actual).square().squeeze(1);
  return predicted.scatter_add(1, actual, at::full_like(actual, -1, at::kDouble)).square().sum(1);
}

double exponential(double mean) {
  return std::exp(mean);
}

}  // namespace

at::Tensor minus_log_likelihood(const Positions& positions) {
  const at::Tensor& actual = positions.actual();
  if (actual.dim() == 1)
    return logs_of(positions.predicted().gather(1, actual.unsqueeze(1)).squeeze(1)).neg();
  return logs_of(positions.predicted()).mul(actual.to(at::kDouble)).sum(1).neg();
}

const PositionScore kLogLoss{
    "log_loss", {TargetKind::kClasses, TargetKind::kDistribution}, &minus_log_likelihood};
const PositionScore kPerplexity{
    "perplexity", {TargetKind::kClasses}, &minus_log_likelihood, &exponential};
const PositionScore kKlDiv{"kl_div", {TargetKind::kDistribution}, &divergence};
const PositionScore kHammingLoss{"hamming_loss", {TargetKind::kLabels}, &share_of_wrong_labels};
const PositionScore kBrier{"brier", {TargetKind::kClasses}, &squares};

void PositionMetric::do_start(const TargetSpec& target) {
  expect_kind(score_.name, score_.kinds, target);
}

void PositionMetric::do_reset() {
  sum_ = 0;
  weight_ = 0;
}

void PositionMetric::do_update(const Prediction& prediction, const TargetBatch& target) {
  const Positions positions(prediction, target);
  sum_ += weighted_sum(score_.each(positions), positions.weights()).item<double>();
  weight_ += positions.total_weight();
}

void PositionMetric::do_merge(const MetricComputer& other) {
  const auto& theirs = static_cast<const PositionMetric&>(other);
  sum_ += theirs.sum_;
  weight_ += theirs.weight_;
}

MetricResult PositionMetric::do_compute() const {
  Number mean = weighted_mean(sum_, weight_);
  if (score_.of_mean != nullptr && !mean.is_undefined())
    mean = score_.of_mean(mean);
  return {{{std::string(score_.name), mean, Direction::kLowerIsBetter}}, {}};
}

StateDict PositionMetric::do_state() const {
  StateDict state;
  state.put_number("sum", sum_);
  state.put_number("weight", weight_);
  return state;
}

void PositionMetric::do_load_state(const StateDict& state) {
  sum_ = state.number("sum");
  weight_ = state.number("weight");
}

}  // namespace treadle::metrics

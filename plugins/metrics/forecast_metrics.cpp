#include "forecast_metrics.h"

#include <cmath>
#include <limits>
#include <string>

#include <ATen/TensorOperators.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros.h>

#include <treadle/base/error.h>

#include "positions.h"
#include "target_check.h"

namespace treadle::metrics {
namespace {

at::Tensor symmetric_share(const at::Tensor& predicted, const at::Tensor& actual) {
  const at::Tensor sizes = predicted.abs() + actual.abs();
  return (predicted - actual).abs().mul(200).div(sizes.masked_fill(sizes.eq(0), 1));
}

// scikit-learn's: by no less than the epsilon of float64.
at::Tensor relative_error(const at::Tensor& predicted, const at::Tensor& actual) {
  return (predicted - actual).abs() /
         actual.abs().clamp_min(std::numeric_limits<double>::epsilon());
}

at::Tensor absolute_error(const at::Tensor& predicted, const at::Tensor& actual) {
  return (predicted - actual).abs();
}

at::Tensor one_each(const at::Tensor& actual) {
  return at::ones_like(actual);
}

at::Tensor size_of_target(const at::Tensor& actual) {
  return actual.abs();
}

void load_sums(at::Tensor& sums, const StateDict& state, std::string_view name) {
  const at::Tensor& stored = state.tensor(name);
  if (stored.sizes() != sums.sizes())
    throw StorageError("the saved metric belongs to a target of another width");
  sums.copy_(stored);
}

}  // namespace

const RatioScore kSmape{"smape", &symmetric_share, &one_each, "no row has a weight above 0"};
const RatioScore kMape{"mape", &relative_error, &one_each, "no row has a weight above 0"};
const RatioScore kWape{"wape", &absolute_error, &size_of_target, "no target is other than 0"};

RatioMetric::RatioMetric(const RatioScore& score) : score_(score) {}

void RatioMetric::do_start(const TargetSpec& target) {
  expect_numbers(score_.name, target);
  above_ = at::zeros({target.width()}, at::kDouble);
  below_ = at::zeros({target.width()}, at::kDouble);
}

void RatioMetric::do_reset() {
  above_.zero_();
  below_.zero_();
}

void RatioMetric::do_update(const Prediction& prediction, const TargetBatch& target) {
  const Positions positions(prediction, target);
  const at::Tensor actual = positions.actual().to(at::kDouble);
  above_.add_(weighted_sum(score_.above(positions.predicted().to(at::kDouble), actual),
                           positions.weights()));
  below_.add_(weighted_sum(score_.below(actual), positions.weights()));
}

void RatioMetric::do_merge(const MetricComputer& other) {
  const auto& theirs = static_cast<const RatioMetric&>(other);
  above_.add_(theirs.above_);
  below_.add_(theirs.below_);
}

MetricResult RatioMetric::do_compute() const {
  const Number value = below_.eq(0).any().item<bool>()
                           ? Number::undefined(score_.nothing_below)
                           : Number((above_ / below_).mean().item<double>());
  return {{{std::string(score_.name), value, Direction::kLowerIsBetter}}, {}};
}

StateDict RatioMetric::do_state() const {
  StateDict state;
  state.put("above", above_);
  state.put("below", below_);
  return state;
}

void RatioMetric::do_load_state(const StateDict& state) {
  load_sums(above_, state, "above");
  load_sums(below_, state, "below");
}

IntervalScore::IntervalScore(const Config& config)
    : ends_({config.get_or("lower", 0.1), config.get_or("upper", 0.9)}, "interval_score") {
  if (!(ends_.levels()[0] < ends_.levels()[1]))
    config.fail("lower", "must be below \"upper\": an interval has a lower and an upper quantile");
}

void IntervalScore::do_start(const TargetSpec& target) {
  expect_numbers("interval_score", target);
}

void IntervalScore::do_reset() {
  score_ = covered_ = extent_ = weight_ = 0;
}

void IntervalScore::do_update(const Prediction& prediction, const TargetBatch& target) {
  const Positions positions(prediction, target);
  const at::Tensor actual = positions.actual().to(at::kDouble);
  const at::Tensor lower = positions.flat(ends_.in(prediction, 0)).to(at::kDouble);
  const at::Tensor upper = positions.flat(ends_.in(prediction, 1)).to(at::kDouble);
  const at::Tensor extent = upper - lower;
  const at::Tensor outside = (lower - actual).clamp_min(0) + (actual - upper).clamp_min(0);
  const double missed = 1 - (ends_.levels()[1] - ends_.levels()[0]);
  const auto sum = [&](const at::Tensor& each) {
    return weighted_sum(each.mean(1), positions.weights()).item<double>();
  };
  score_ += sum(extent + outside * (2 / missed));
  covered_ += sum(outside.eq(0).to(at::kDouble));
  extent_ += sum(extent);
  weight_ += positions.total_weight();
}

void IntervalScore::do_merge(const MetricComputer& other) {
  const auto& theirs = static_cast<const IntervalScore&>(other);
  score_ += theirs.score_;
  covered_ += theirs.covered_;
  extent_ += theirs.extent_;
  weight_ += theirs.weight_;
}

MetricResult IntervalScore::do_compute() const {
  const auto mean = [&](double sum) { return weighted_mean(sum, weight_); };
  return {{{"interval_score", mean(score_), Direction::kLowerIsBetter},
           {"interval_coverage", mean(covered_), Direction::kNone},
           {"interval_width", mean(extent_), Direction::kLowerIsBetter}},
          {}};
}

StateDict IntervalScore::do_state() const {
  StateDict state;
  state.put_number("score", score_);
  state.put_number("covered", covered_);
  state.put_number("extent", extent_);
  state.put_number("weight", weight_);
  return state;
}

void IntervalScore::do_load_state(const StateDict& state) {
  score_ = state.number("score");
  covered_ = state.number("covered");
  extent_ = state.number("extent");
  weight_ = state.number("weight");
}

}  // namespace treadle::metrics

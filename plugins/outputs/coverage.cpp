#include "coverage.h"

#include <string_view>

#include <ATen/TensorOperators.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros.h>

#include <treadle/base/error.h>
#include <treadle/base/number.h>

#include "held_out_rows.h"

namespace treadle::outputs {
namespace {

at::Tensor extra_of(const Prediction& prediction, std::string_view name) {
  for (const Prediction::Extra& extra : prediction.extras) {
    if (extra.name == name)
      return flat(extra.values);
  }
  return {};
}

}  // namespace

void Coverage::do_reset() {
  sums_ = at::zeros({3}, at::kDouble);
}

void Coverage::do_update(const Prediction& prediction, const TargetBatch& target) {
  const Inside here = inside(prediction, target);
  if (!here.size.defined())
    return;
  const at::Tensor weights = target.weights().defined()
                                 ? target.weights().reshape(-1).to(at::kDouble)
                                 : at::ones_like(here.size);
  const at::Tensor is_padding = weights.eq(0);
  sums_[0].add_(here.is_inside.masked_fill(is_padding, 0).mul(weights).sum());
  sums_[1].add_(here.size.masked_fill(is_padding, 0).mul(weights).sum());
  sums_[2].add_(weights.sum());
}

void Coverage::do_merge(const MetricComputer& other) {
  sums_.add_(static_cast<const Coverage&>(other).sums_);
}

MetricResult Coverage::do_compute() const {
  const auto sums = sums_.accessor<double, 1>();
  const auto mean = [&](double sum) {
    return sums[2] > 0 ? Number(sum / sums[2])
                       : Number::undefined(
                             "there are none; outputs.conformal makes them, with \"cv+\" "
                             "for test rows and new data alone");
  };
  return {{{share_, mean(sums[0]), Direction::kNone},
           {size_, mean(sums[1]), Direction::kLowerIsBetter}},
          {}};
}

StateDict Coverage::do_state() const {
  StateDict state;
  state.put("sums", sums_);
  return state;
}

void Coverage::do_load_state(const StateDict& state) {
  const at::Tensor& stored = state.tensor("sums");
  if (stored.sizes() != sums_.sizes())
    throw StorageError("the saved metric \"" + share_ + "\" does not have three sums");
  sums_ = stored.clone();
}

IntervalCoverage::IntervalCoverage(const Config& /*config*/)
    : Coverage("interval_coverage", "interval_width") {}

void IntervalCoverage::do_start(const TargetSpec& target) {
  treadle::expect_kind("metric \"interval_coverage\"", {TargetKind::kNumbers}, target,
                       "set_coverage");
}

Coverage::Inside IntervalCoverage::inside(const Prediction& prediction,
                                          const TargetBatch& target) const {
  const at::Tensor lower = extra_of(prediction, "lower");
  const at::Tensor upper = extra_of(prediction, "upper");
  if (!lower.defined() || !upper.defined())
    return {};
  const at::Tensor actual = flat(target.values());
  return {actual.ge(lower).logical_and(actual.le(upper)).to(at::kDouble).mean(1),
          (upper - lower).mean(1)};
}

SetCoverage::SetCoverage(const Config& /*config*/) : Coverage("set_coverage", "set_size") {}

void SetCoverage::do_start(const TargetSpec& target) {
  treadle::expect_kind("metric \"set_coverage\"", {TargetKind::kClasses}, target,
                       "interval_coverage");
}

Coverage::Inside SetCoverage::inside(const Prediction& prediction,
                                     const TargetBatch& target) const {
  const at::Tensor in_set = extra_of(prediction, "in_set");
  if (!in_set.defined())
    return {};
  return {in_set.gather(1, target.values().reshape({-1, 1})).squeeze(1), in_set.sum(1)};
}

}  // namespace treadle::outputs

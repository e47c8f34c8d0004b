#include "coverage.h"

#include <string_view>

#include <ATen/TensorOperators.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <treadle/base/error.h>
#include <treadle/base/number.h>

#include "held_out_rows.h"

namespace treadle::outputs {
namespace {

const at::Tensor* extra_of(const Prediction& prediction, std::string_view name) {
  for (const Prediction::Extra& extra : prediction.extras) {
    if (extra.name == name)
      return &extra.values;
  }
  return nullptr;
}

}  // namespace

Coverage::Coverage(const Config& /*config*/) {}

void Coverage::do_start(const TargetSpec& target) {
  treadle::expect_kind("metric \"coverage\"", {TargetKind::kClasses, TargetKind::kNumbers}, target,
                       "hamming_loss");
  is_classes_ = target.kind == TargetKind::kClasses;
  sums_ = at::zeros({3}, at::kDouble);
}

void Coverage::do_reset() {
  sums_.zero_();
}

void Coverage::do_update(const Prediction& prediction, const TargetBatch& target) {
  at::Tensor inside;
  at::Tensor size;
  if (is_classes_) {
    const at::Tensor* const in_set = extra_of(prediction, "in_set");
    if (in_set == nullptr)
      return;
    const at::Tensor sets = flat(*in_set);
    inside = sets.gather(1, target.values().reshape({-1, 1})).squeeze(1);
    size = sets.sum(1);
  } else {
    const at::Tensor* const lower = extra_of(prediction, "lower");
    const at::Tensor* const upper = extra_of(prediction, "upper");
    if (lower == nullptr || upper == nullptr)
      return;
    const at::Tensor low = flat(*lower);
    const at::Tensor high = flat(*upper);
    const at::Tensor actual = flat(target.values());
    inside = actual.ge(low).logical_and_(actual.le(high)).to(at::kDouble).mean(1);
    size = (high - low).mean(1);
  }
  const at::Tensor weights = target.weights().defined()
                                 ? target.weights().reshape(-1).to(at::kDouble)
                                 : at::ones_like(inside);
  sums_[0].add_(inside.mul(weights).sum());
  sums_[1].add_(size.mul(weights).sum());
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
                             "there are no intervals or sets: outputs.conformal "
                             "makes them of predictions that are complete");
  };
  MetricResult result;
  result.values.push_back({"coverage", mean(sums[0]), Direction::kNone});
  result.values.push_back(
      {is_classes_ ? "set_size" : "width", mean(sums[1]), Direction::kLowerIsBetter});
  return result;
}

StateDict Coverage::do_state() const {
  StateDict state;
  state.put("sums", sums_);
  return state;
}

void Coverage::do_load_state(const StateDict& state) {
  const at::Tensor& stored = state.tensor("sums");
  if (stored.sizes() != sums_.sizes())
    throw StorageError("the saved metric \"coverage\" does not have three sums");
  sums_.copy_(stored);
}

}  // namespace treadle::outputs

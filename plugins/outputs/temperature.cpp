#include "temperature.h"

#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/diag.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/linalg_solve.h>
#include <ATen/ops/log_sigmoid.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <treadle/base/error.h>

#include "held_out_rows.h"

namespace treadle::outputs {
namespace {

constexpr double kLeast = 0.01;
constexpr double kMost = 100;
constexpr int kMostSteps = 100;
constexpr double kPrecision = 1e-12;

/// The negative log-likelihood, in 1 / T, with its derivatives.
struct Likelihood {
  double value;
  at::Tensor gradient;   // [K]
  at::Tensor curvature;  // [K, K]
};

/// Rows of a softmax, or of one sigmoid per column.
struct Rows {
  at::Tensor logits;   // [N, C]
  at::Tensor actual;   // one-hot for a softmax, 0 or 1 for sigmoids: [N, C]
  at::Tensor weights;  // [N, 1], sum 1
  bool is_softmax;
  bool per_class;

  Likelihood at(const at::Tensor& inverse) const {
    const at::Tensor scaled = logits * inverse;
    at::Tensor value;
    at::Tensor probabilities;
    at::Tensor curvature;
    if (is_softmax) {
      const at::Tensor logs = scaled.log_softmax(1);
      probabilities = logs.exp();
      value = -(logs * actual * weights).sum();
      const at::Tensor mean = probabilities * logits;
      curvature = per_class
                      ? at::diag((mean * logits * weights).sum(0)) - (mean * weights).t().mm(mean)
                      : ((mean * logits).sum(1, true) - mean.sum(1, true).square())
                            .mul(weights)
                            .sum()
                            .view({1, 1});
    } else {
      probabilities = scaled.sigmoid();
      value =
          -((at::log_sigmoid(scaled) * actual + at::log_sigmoid(-scaled) * (1 - actual)) * weights)
               .sum();
      const at::Tensor each =
          (probabilities * (1 - probabilities) * logits.square() * weights).sum(0);
      curvature = per_class ? at::diag(each) : each.sum().view({1, 1});
    }
    const at::Tensor each = ((probabilities - actual) * logits * weights).sum(0);
    return {value.item<double>(), per_class ? each : each.sum().view({1}), curvature};
  }
};

/// Newton's method with steps that are halved until they help.
at::Tensor most_likely(const Rows& rows, at::Tensor inverse) {
  Likelihood here = rows.at(inverse);
  for (int step = 0; step < kMostSteps; ++step) {
    const at::Tensor ridge =
        at::eye(inverse.size(0), at::kDouble) * (1e-9 + 1e-12 * here.curvature.abs().max());
    at::Tensor change =
        at::linalg_solve(here.curvature + ridge, here.gradient.unsqueeze(1)).squeeze(1);
    bool has_moved = false;
    for (int halving = 0; halving < 40 && !has_moved; ++halving, change = change / 2) {
      const at::Tensor next = (inverse - change).clamp(1 / kMost, 1 / kLeast);
      const Likelihood there = rows.at(next);
      if (there.value < here.value) {
        has_moved = (next - inverse).abs().max().item<double>() > kPrecision;
        inverse = next;
        here = there;
        if (!has_moved)
          return inverse;
      }
    }
    if (!has_moved)
      break;
  }
  return inverse;
}

}  // namespace

Temperature::Temperature(const Config& config)
    : per_class_(config.get_or<bool>("per_class", false)) {}

void Temperature::do_start(const TargetSpec& target) {
  expect_kind("temperature", {TargetKind::kClasses, TargetKind::kLabels}, target);
  target_ = target;
  inverse_ = at::ones({per_class_ ? target.class_count() : 1}, at::kDouble);
}

namespace {

/// Those of a softmax centered, so that a temperature for each class does not depend on a number
/// that is added to all of them.
at::Tensor scalable_logits(const Prediction& prediction, bool per_class) {
  at::Tensor logits = logits_of(prediction);
  if (!per_class || prediction.kind == TargetKind::kLabels)
    return logits;
  if (logits.size(1) == 1)  // of two classes
    return at::cat({-logits / 2, logits / 2}, 1);
  return logits - logits.mean(1, true);
}

}  // namespace

void Temperature::do_fit(const Prediction& prediction, const TargetBatch& target) {
  const HeldOutRows held_out(prediction, target);
  if (held_out.count() == 0)
    throw DataError("output \"temperature\": no held-out row has a weight");
  at::Tensor logits = scalable_logits(prediction, per_class_);
  if (held_out.counted.defined())
    logits = logits.index({held_out.counted});
  std::vector<at::Tensor> actual;
  if (logits.size(1) == 1) {
    actual.push_back(held_out.is_class(target_.class_count() - 1));
  } else {
    for (std::int64_t c = 0; c < target_.class_count(); ++c)
      actual.push_back(held_out.is_class(c));
  }
  const bool is_softmax = target_.kind == TargetKind::kClasses && logits.size(1) > 1;
  const Rows rows{logits, at::stack(actual, 1),
                  (held_out.weights / held_out.weights.sum()).unsqueeze(1), is_softmax, per_class_};
  inverse_ = most_likely(rows, at::ones_like(inverse_));
}

Prediction Temperature::do_apply(Prediction prediction, const Batch& /*rows*/) const {
  const at::Tensor scaled = scalable_logits(prediction, per_class_) * inverse_;
  const bool is_softmax = target_.kind == TargetKind::kClasses && scaled.size(1) > 1;
  const at::ScalarType dtype = prediction.values.scalar_type();
  std::vector<std::int64_t> sizes = prediction.values.sizes().vec();
  prediction.values = as_values(is_softmax ? scaled.softmax(1) : scaled.sigmoid(), prediction);
  sizes.back() = scaled.size(1);
  prediction.logits = scaled.view(sizes).to(dtype);
  return prediction;
}

std::vector<MetricValue> Temperature::do_learned() const {
  std::vector<MetricValue> learned;
  for (std::int64_t c = 0; c < inverse_.size(0); ++c) {
    const std::string of =
        per_class_ ? "." + target_.class_names[static_cast<std::size_t>(c)] : std::string();
    learned.push_back({"temperature" + of, 1 / inverse_[c].item<double>(), Direction::kNone});
  }
  return learned;
}

StateDict Temperature::do_state() const {
  StateDict state;
  state.put("inverse", inverse_);
  return state;
}

void Temperature::do_load_state(const StateDict& state) {
  const at::Tensor& stored = state.tensor("inverse");
  if (stored.sizes() != inverse_.sizes())
    throw StorageError("the temperatures belong to data with another number of classes");
  inverse_ = stored.to(at::kDouble);
}

}  // namespace treadle::outputs

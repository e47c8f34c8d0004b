#include "tree_objective.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/bincount.h>
#include <ATen/ops/full.h>
#include <ATen/ops/one_hot.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>

namespace treadle::trees {
namespace {

[[noreturn]] void refuse_loss(const std::string& why) {
  throw DataError("gradient_boosted_trees " + why +
                  "; losses that it learns by are mse for numbers, cross_entropy or "
                  "bce_with_logits for classes, and bce_with_logits for labels");
}

void expect_target(const TargetSpec& target) {
  if (target.kind == TargetKind::kDistribution || !target.positions().empty()) {
    throw DataError(
        "gradient_boosted_trees predicts one class, some labels or some numbers for "
        "each row, and the target " +
        quote_text(target.name) + " is of another kind; use the model \"flow\"");
  }
}

/// Targets and outputs for which the gradients of a loss are looked at.
struct Probe {
  at::Tensor targets;
  at::Tensor outputs;  ///< float64 [n, width]
};

/// Numbers without a pattern in [-size, size]: float64 [rows, width].
at::Tensor spread(std::int64_t rows, std::int64_t width, double size) {
  return at::arange(1, rows * width + 1, at::kDouble).mul(1.7).sin().mul(size).view({rows, width});
}

/// Outputs near the target and far from it, on both sides.
std::vector<Probe> probes(const TargetSpec& target, std::int64_t width) {
  std::vector<Probe> probes;
  switch (target.kind) {
    case TargetKind::kNumbers:
      for (const double distance : {0.01, 1.0, 100.0}) {
        const at::Tensor numbers = spread(7, width, 3);
        probes.push_back({numbers, numbers + distance * spread(7, width, 1).flip({0})});
      }
      return probes;
    case TargetKind::kClasses:
      for (const double size : {0.0, 1.0, 4.0}) {
        const std::int64_t classes = target.class_count();
        probes.push_back({at::arange(classes, at::kLong), spread(classes, width, size)});
      }
      return probes;
    case TargetKind::kLabels:
      for (const double size : {0.0, 1.0, 4.0}) {
        const at::Tensor labels =
            at::arange(6, at::kLong).remainder(2).view({6, 1}).to(at::kDouble);
        probes.push_back({labels.repeat({1, width}), spread(6, width, size)});
      }
      return probes;
    case TargetKind::kDistribution:
      break;
  }
  return probes;
}

/// The gradient of the loss for each output of the probe, by its own formula.
at::Tensor gradients_of(const Objective& objective, const Probe& probe) {
  Batch batch;
  const std::int64_t rows = probe.outputs.size(0);
  batch.targets = {probe.targets};
  batch.original_targets = batch.targets;
  batch.weights = at::ones({rows}, at::kDouble);
  batch.rows = at::arange(rows, at::kLong);
  const c10::AutoGradMode with_gradients(true);
  const at::Tensor outputs = probe.outputs.clone().requires_grad_();
  const at::Tensor sum = objective.forward({outputs}, batch).front().sum;
  if (!sum.requires_grad())
    return at::zeros({rows, outputs.size(1)}, at::kDouble);
  sum.backward();
  return outputs.grad();
}

/// The gradient that XGBoost has for each output of the probe.
at::Tensor gradients_of(const TargetSpec& target, const Probe& probe) {
  const at::Tensor& x = probe.outputs;
  if (target.kind == TargetKind::kNumbers)
    return x - probe.targets;
  if (target.kind == TargetKind::kLabels)
    return x.sigmoid() - probe.targets;
  if (x.size(1) == 1)
    return x.sigmoid() - probe.targets.unsqueeze(1);
  return x.softmax(1) - at::one_hot(probe.targets, x.size(1));
}

/// Factors between the gradients of each row, float64 [n]; nothing where they are no multiples.
at::Tensor factors_between(const at::Tensor& gradients, const at::Tensor& of_xgboost) {
  constexpr double kTolerance = 1e-4;  // losses may compute in float32
  const at::Tensor factors =
      gradients.mul(of_xgboost).sum(1).div(of_xgboost.square().sum(1).clamp_min(1e-30));
  const at::Tensor rest = gradients.sub(of_xgboost * factors.unsqueeze(1)).abs().amax(1);
  const at::Tensor size = gradients.abs().amax(1);
  const bool are_multiples = rest.le(kTolerance * size).all().item<bool>() &&
                             factors.ge(0).all().item<bool>() && factors.gt(0).any().item<bool>();
  return are_multiples ? factors : at::Tensor();
}

bool are_close(const at::Tensor& a, const at::Tensor& b) {
  return a.sub(b).abs().le(1e-4 * b.abs()).all().item<bool>();
}

}  // namespace

std::int64_t margins_for(const ModelSpec& spec) {
  if (spec.targets.size() != 1) {
    throw DataError("gradient_boosted_trees predicts one target, and there are " +
                    std::to_string(spec.targets.size()) + "; train one model for each");
  }
  const TargetSpec& target = spec.targets.front();
  expect_target(target);
  const bool is_classes = target.kind == TargetKind::kClasses;
  const std::int64_t width = is_classes ? target.class_count() : target.width();
  const bool has_two_classes = is_classes && width == 2;
  const auto is_expected = [&](const OutputSpec& output) {
    return output.shape.size() == 1 &&
           (output.width() == width || (has_two_classes && output.width() == 1));
  };
  if (spec.outputs.size() != 1 || !is_expected(spec.outputs.front()))
    refuse_loss("cannot compute the outputs that the loss requires");
  return has_two_classes ? 1 : width;
}

TreeObjective find_objective(const Objective& objective) {
  if (objective.terms().size() != 1 || objective.targets().size() != 1)
    refuse_loss("learns by one loss, and there are several terms");
  if (!objective.is_additive())
    refuse_loss("learns by losses that are a sum over rows, and this one is not");
  const TargetSpec& target = objective.targets().front();
  const std::int64_t width = objective.outputs().front().width();
  at::Tensor factors;
  for (const Probe& probe : probes(target, width)) {
    const at::Tensor its =
        factors_between(gradients_of(objective, probe), gradients_of(target, probe));
    const bool fits = its.defined() && (!factors.defined() || are_close(its, factors));
    if (!fits)
      refuse_loss(
          "cannot learn by this loss, or not with its parameters: its gradients are none "
          "of XGBoost's");
    factors = its;
  }
  if (target.kind != TargetKind::kClasses) {
    if (!are_close(factors, factors.mean()))
      refuse_loss("cannot learn by a loss that weights labels differently");
    return {target.kind == TargetKind::kNumbers ? "reg:squarederror" : "binary:logistic", {}};
  }
  const bool are_ones = are_close(factors, at::ones({}, at::kDouble));
  return {target.class_count() == 2 ? "binary:logistic" : "multi:softprob",
          are_ones ? at::Tensor() : factors};
}

TreeTargets targets_of(const Batch& rows, const Objective& objective, const TreeObjective& its) {
  const TargetSpec& spec = objective.targets().front();
  const auto target = TargetBatch::transformed(rows, 0, spec);
  const at::Tensor values = target.values().cpu();
  TreeTargets targets;
  targets.labels = values.reshape({values.size(0), -1}).to(at::kFloat).contiguous();
  if (target.weights().defined())
    targets.weights = target.weights().cpu().to(at::kFloat).contiguous();
  if (its.class_weights.defined()) {
    const at::Tensor of_rows = its.class_weights.index_select(0, values.reshape({-1}));
    targets.weights =
        (targets.weights.defined() ? of_rows * targets.weights : of_rows).to(at::kFloat);
  }
  return targets;
}

std::vector<float> base_of(const TreeTargets& targets, const TreeObjective& its,
                           std::int64_t margins) {
  // No class is impossible, whatever these rows are.
  constexpr double kLeastShare = 1e-6;
  at::Tensor values = targets.labels.to(at::kDouble);
  if (its.name == "multi:softprob")
    values = at::one_hot(values.reshape({-1}).to(at::kLong), margins).to(at::kDouble);
  const at::Tensor weights = targets.weights.defined()
                                 ? targets.weights.to(at::kDouble).unsqueeze(1)
                                 : at::ones({values.size(0), 1}, at::kDouble);
  at::Tensor base = values.mul(weights).sum(0).div(weights.sum().clamp_min(1e-300));
  if (its.name != "reg:squarederror")
    base.clamp_(kLeastShare, 1 - kLeastShare);
  if (its.name == "binary:logistic")
    base = base.div(1 - base).log();
  if (its.name == "multi:softprob")
    base = base.log();
  base = base.to(at::kFloat).contiguous();
  const auto* const numbers = base.data_ptr<float>();
  return {numbers, numbers + margins};
}

}  // namespace treadle::trees

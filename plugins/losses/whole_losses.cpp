#include "whole_losses.h"

#include <limits>

#include <ATen/TensorOperators.h>
#include <ATen/ops/mv.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/softmax.h>

#include <treadle/base/error.h>

#include "positions.h"
#include "target_check.h"

namespace treadle::losses {
namespace {

constexpr double kEpsilon = 1e-8;

// The mean of [N, width] over positions, [width]; 0 where none counts.
at::Tensor mean_over(const at::Tensor& values, const at::Tensor& weights) {
  if (!weights.defined())
    return values.sum(0).div(static_cast<double>(values.size(0)));
  return at::mv(values.t(), weights)
      .div(weights.sum().clamp_min(std::numeric_limits<float>::min()));
}

// The population's deviation, [width], at least kEpsilon, where it has no slope.
at::Tensor deviation(const at::Tensor& centered, const at::Tensor& weights) {
  return mean_over(centered.square(), weights).clamp_min(kEpsilon * kEpsilon).sqrt();
}

}  // namespace

at::Tensor WholeLoss::do_weight(const TargetBatch& target) const {
  return at::scalar_tensor(1.0, target.values().options());
}

std::vector<OutputSpec> Correlation::do_outputs_for(const TargetSpec& target) const {
  expect_kind("correlation", {TargetKind::kNumbers}, target);
  return {{"values", shape_per_position(target, target.width())}};
}

LossTerms Correlation::do_forward(const std::vector<at::Tensor>& outputs,
                                  const TargetBatch& target) const {
  const Positions numbers(outputs[0], target);
  const at::Tensor& weights = numbers.weights;
  const at::Tensor x = numbers.output - mean_over(numbers.output, weights);
  const at::Tensor y = numbers.target - mean_over(numbers.target, weights);
  return {
      mean_over(x * y, weights).div(deviation(x, weights)).div(deviation(y, weights)).mean().neg(),
      do_weight(target)};
}

Prediction Correlation::do_prediction(const std::vector<at::Tensor>& outputs) const {
  return {TargetKind::kNumbers, outputs[0]};
}

std::vector<OutputSpec> Sharpe::do_outputs_for(const TargetSpec& target) const {
  expect_kind("sharpe", {TargetKind::kNumbers}, target);
  if (target.width() < 2) {
    throw DataError("loss \"sharpe\" needs the returns of at least two assets, but the target \"" +
                    target.name + "\" has one number a row; name a column for each asset");
  }
  return {{"scores", shape_per_position(target, target.width()), {Estimate::kDimensionless}}};
}

LossTerms Sharpe::do_forward(const std::vector<at::Tensor>& outputs,
                             const TargetBatch& target) const {
  const Positions periods(outputs[0], target);
  const at::Tensor& weights = periods.weights;
  const at::Tensor returns =
      at::softmax(periods.output, 1).mul(periods.target).sum(1, /*keepdim=*/true);
  const at::Tensor mean = mean_over(returns, weights);
  const at::Tensor variance = mean_over((returns - mean).square(), weights);
  const at::Tensor none = variance.detach() < kEpsilon * kEpsilon;
  // Where there is no deviation, a number that has a slope stands in for it.
  return {mean.div(variance.masked_fill(none, 1).sqrt()).masked_fill(none, 0).sum().neg(),
          do_weight(target)};
}

Prediction Sharpe::do_prediction(const std::vector<at::Tensor>& outputs) const {
  return {TargetKind::kNumbers, at::softmax(outputs[0], -1)};
}

}  // namespace treadle::losses

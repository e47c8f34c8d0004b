#include "number_losses.h"

#include <ATen/ops/l1_loss.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/mv.h>
#include <ATen/ops/smooth_l1_loss.h>

#include "positions.h"
#include "target_check.h"

namespace treadle::losses {
namespace {

std::int64_t reduction(bool sum) {
  return sum ? at::Reduction::Sum : at::Reduction::None;
}

}  // namespace

std::vector<OutputSpec> NumberLoss::do_outputs_for(const TargetSpec& target) const {
  expect_kind(name_, {TargetKind::kNumbers}, target);
  return {{"values", shape_per_position(target, target.width())}};
}

LossTerms NumberLoss::do_forward(const std::vector<at::Tensor>& outputs,
                                 const TargetBatch& target) const {
  const Positions numbers(outputs[0], target);
  // One number is the usual case, and needs no weight of its own.
  const at::Tensor weight = numbers.output.size(1) == 1 ? at::Tensor() : do_weight(target);
  if (!numbers.weights.defined())
    return {differences(numbers.output, numbers.target, Reduce::kSum), weight};
  const at::Tensor each = differences(numbers.output, numbers.target, Reduce::kNot);
  return {at::mv(each.t(), numbers.weights).sum(), weight};
}

at::Tensor NumberLoss::do_weight(const TargetBatch& target) const {
  return weight_of_values(target, target.values().size(-1));
}

Prediction NumberLoss::do_prediction(const std::vector<at::Tensor>& outputs) const {
  return {TargetKind::kNumbers, outputs[0]};
}

Mse::Mse(const Config&) : NumberLoss("mse") {}

at::Tensor Mse::differences(const at::Tensor& values, const at::Tensor& targets,
                            Reduce reduce) const {
  return at::mse_loss(values, targets, reduction(reduce == Reduce::kSum));
}

L1::L1(const Config&) : NumberLoss("l1") {}

at::Tensor L1::differences(const at::Tensor& values, const at::Tensor& targets,
                           Reduce reduce) const {
  return at::l1_loss(values, targets, reduction(reduce == Reduce::kSum));
}

SmoothL1::SmoothL1(const Config& config)
    : NumberLoss("smooth_l1"), beta_(config.get<double>("beta")) {}

at::Tensor SmoothL1::differences(const at::Tensor& values, const at::Tensor& targets,
                                 Reduce reduce) const {
  return at::smooth_l1_loss(values, targets, reduction(reduce == Reduce::kSum), beta_);
}

}  // namespace treadle::losses

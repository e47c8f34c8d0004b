#include "number_losses.h"

#include <ATen/ops/full.h>
#include <ATen/ops/l1_loss.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/mv.h>
#include <ATen/ops/smooth_l1_loss.h>

#include "target_check.h"

namespace treadle::losses {
namespace {

std::int64_t reduction(bool sum) {
  return sum ? at::Reduction::Sum : at::Reduction::None;
}

}  // namespace

std::vector<OutputSpec> NumberLoss::do_outputs_for(const TargetSpec& target) const {
  expect_numbers(name_, target);
  return {{"values", target.width}};
}

LossTerms NumberLoss::do_forward(const std::vector<at::Tensor>& outputs, const Batch& batch) const {
  const at::Tensor& values = outputs[0];
  const std::int64_t width = values.size(1);
  if (!batch.weights.defined()) {
    // One number a row is the usual case, and needs no weight of its own.
    return {differences(values, batch.targets, Reduce::kSum),
            width == 1 ? at::Tensor()
                       : at::full({}, static_cast<double>(values.numel()),
                                  values.options().requires_grad(false))};
  }
  const at::Tensor each = differences(values, batch.targets, Reduce::kNot);
  return {at::mv(each.t(), batch.weights).sum(), batch.weights.sum().mul(width)};
}

Predictions NumberLoss::do_predictions(const std::vector<at::Tensor>& outputs) const {
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

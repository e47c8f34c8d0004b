#include "sparse_masks.h"

#include <algorithm>

#include <ATen/ops/batch_norm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

#include <treadle/base/error.h>
#include <treadle/plan/ops.h>

#include "stream.h"

namespace treadle::tabular {

GhostBatchNorm::GhostBatchNorm(const Config& config, const LayerSpec& spec)
    : virtual_batch_size_(config.get<std::int64_t>("virtual_batch_size")),
      eps_(config.get<double>("eps")) {
  const std::int64_t width = width_of_rows(spec);
  weight_ = register_parameter("weight", at::ones({width}, spec.dtype));
  bias_ = register_parameter("bias", at::zeros({width}, spec.dtype));
  statistics_ = {register_buffer("running_mean", at::zeros({width}, spec.dtype)),
                 register_buffer("running_var", at::ones({width}, spec.dtype)),
                 config.get<double>("momentum")};
}

at::Tensor GhostBatchNorm::forward(const Inputs& inputs, LayerContext&) {
  const at::Tensor& x = inputs[0];
  if (!is_training()) {
    return at::batch_norm(x, weight_, bias_, statistics_.mean(), statistics_.var(),
                          /*training=*/false, /*momentum=*/0, eps_, /*cudnn_enabled=*/true);
  }
  const std::int64_t rows = x.size(0);
  if (rows < 2) {
    throw TrainingError(
        "batch norm cannot train on one value a channel; choose a batch_size that leaves no single "
        "row over, or set \"drop_last\"");
  }
  const std::int64_t parts =
      std::min((rows + virtual_batch_size_ - 1) / virtual_batch_size_, rows / 2);
  // The first parts have one row more.
  const std::int64_t longer = rows % parts;
  const std::int64_t first_rows = longer * (rows / parts + 1);
  if (longer == 0)
    return normed_parts(x, parts);
  return at::cat({normed_parts(x.narrow(0, 0, first_rows), longer),
                  normed_parts(x.narrow(0, first_rows, rows - first_rows), parts - longer)});
}

/// In evaluation it is batch normalization; in training it is called.
std::optional<PlanValue> GhostBatchNorm::lower(PlanBuilder& builder,
                                               std::span<const PlanValue> inputs) const {
  if (is_training())
    return std::nullopt;
  return builder.apply(plan_batch_norm({weight_, bias_, statistics_.mean(), statistics_.var(),
                                        /*training=*/false, /*momentum=*/0, eps_}),
                       inputs[0]);
}

/// Of as many rows each, all at once: as channels beside each other.
at::Tensor GhostBatchNorm::normed_parts(const at::Tensor& rows, std::int64_t parts) {
  const std::int64_t width = rows.size(1);
  const std::int64_t length = rows.size(0) / parts;
  const auto side_by_side = [&] {
    return rows.reshape({parts, length, width}).transpose(0, 1).reshape({length, parts * width});
  };
  const at::Tensor x = parts == 1 ? rows : side_by_side();
  // With a momentum of 1 these become the statistics of the parts.
  const at::Tensor mean = at::zeros_like(statistics_.mean()).repeat({parts});
  const at::Tensor var = at::zeros_like(statistics_.var()).repeat({parts});
  const at::Tensor y =
      at::batch_norm(x, weight_.repeat({parts}), bias_.repeat({parts}), mean, var,
                     /*training=*/true, /*momentum=*/1, eps_, /*cudnn_enabled=*/true);
  {
    const at::NoGradGuard no_gradients;
    for (std::int64_t part = 0; part < parts; ++part) {
      const double share = statistics_.next_momentum();
      statistics_.mean().lerp_(mean.narrow(0, part * width, width), share);
      statistics_.var().lerp_(var.narrow(0, part * width, width), share);
    }
  }
  if (parts == 1)
    return y;
  return y.reshape({length, parts, width}).transpose(0, 1).reshape({parts * length, width});
}

RelaxedPrior::RelaxedPrior(const Config& config, const LayerSpec& spec)
    : relaxation_(config.get<double>("relaxation")) {
  for (const TensorSpec& mask : spec.inputs) {
    if (mask.sizes != spec.inputs.front().sizes) {
      throw DataError("takes masks of the shape of its scores, " + spec.inputs.front().text() +
                      ", got " + mask.text());
    }
  }
}

at::Tensor RelaxedPrior::forward(const Inputs& inputs, LayerContext&) {
  at::Tensor scores = inputs[0];
  for (std::size_t i = 1; i < inputs.size(); ++i)
    scores = scores.mul(inputs[i].neg().add(relaxation_));
  return scores;
}

std::optional<PlanValue> RelaxedPrior::lower(PlanBuilder& builder,
                                             std::span<const PlanValue> inputs) const {
  PlanValue scores = inputs[0];
  for (const PlanValue mask : inputs.subspan(1)) {
    const PlanValue taken = builder.elementwise(ElementwiseOp::kScale, mask, -1);
    const PlanValue left = builder.elementwise(ElementwiseOp::kShift, taken, relaxation_);
    scores = builder.elementwise(ElementwiseOp::kMultiply, scores, left);
  }
  return scores;
}

EntropyPenalty::EntropyPenalty(const Config& config, const LayerSpec& spec)
    : weight_(config.get<double>("weight")), eps_(config.get<double>("eps")) {
  if (spec.inputs.size() != 1)
    throw DataError("takes one input, got " + std::to_string(spec.inputs.size()));
}

at::Tensor EntropyPenalty::forward(const Inputs& inputs, LayerContext& context) {
  const at::Tensor& p = inputs[0];
  if (context.takes_losses())
    context.add_loss("entropy", p.mul(p.clamp_min(0).add(eps_).log()).sum().mul(-weight_));
  return p;
}

/// A graph with this layer runs node by node while losses are taken.
std::optional<PlanValue> EntropyPenalty::lower(PlanBuilder&,
                                               std::span<const PlanValue> inputs) const {
  return inputs[0];
}

Scale::Scale(const Config& config, const LayerSpec& spec) : factor_(config.get<double>("factor")) {
  if (spec.inputs.size() != 1)
    throw DataError("takes one input, got " + std::to_string(spec.inputs.size()));
}

at::Tensor Scale::forward(const Inputs& inputs, LayerContext&) {
  return inputs[0].mul(factor_);
}

std::optional<PlanValue> Scale::lower(PlanBuilder& builder,
                                      std::span<const PlanValue> inputs) const {
  return builder.elementwise(ElementwiseOp::kScale, inputs[0], factor_);
}

}  // namespace treadle::tabular

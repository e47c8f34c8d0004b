#include "normalization.h"

#include <algorithm>
#include <string>

#include <ATen/ops/batch_norm.h>
#include <ATen/ops/group_norm.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <treadle/base/error.h>
#include <treadle/core/model/functional.h>
#include <treadle/plan/lowerable.h>
#include <treadle/plan/ops.h>

namespace treadle::layers {
namespace {

std::int64_t channels_of(const LayerSpec& spec) {
  only_input(spec);
  return expect_at_least(spec, 2, "channels in dimension 1").sizes[1];
}

std::int64_t width_of(const LayerSpec& spec) {
  only_input(spec);
  return expect_at_least(spec, 2, "rows of numbers [B, width]").width();
}

}  // namespace

BatchNorm::BatchNorm(const Config& config, const LayerSpec& spec)
    : eps_(config.get<double>("eps")) {
  const std::int64_t channels = channels_of(spec);
  weight_ = register_parameter("weight", at::ones({channels}, spec.dtype));
  bias_ = register_parameter("bias", at::zeros({channels}, spec.dtype));
  statistics_ = {register_buffer("running_mean", at::zeros({channels}, spec.dtype)),
                 register_buffer("running_var", at::ones({channels}, spec.dtype)),
                 config.get<double>("momentum")};
}

at::Tensor BatchNorm::forward(const Inputs& inputs, LayerContext&) {
  const at::Tensor& values = inputs[0];
  if (is_training() && values.numel() == values.size(1)) {
    throw TrainingError(
        "batch norm cannot train on one value a channel; choose a batch_size that leaves no single "
        "row over, set "
        "\"drop_last\" or use layer_norm");
  }
  return at::batch_norm(values, weight_, bias_, statistics_.mean(), statistics_.var(),
                        is_training(), is_training() ? statistics_.next_momentum() : 0, eps_,
                        /*cudnn_enabled=*/true);
}

std::optional<PlanValue> BatchNorm::lower(PlanBuilder& builder,
                                          std::span<const PlanValue> inputs) const {
  const std::vector<std::int64_t>& sizes = builder.spec(inputs[0]).sizes;
  const bool has_one_value =
      std::all_of(sizes.begin() + 2, sizes.end(), [](std::int64_t size) { return size == 1; }) &&
      sizes[0] == 1;
  if (is_training() && has_one_value)
    return std::nullopt;
  return builder.apply(plan_batch_norm({weight_, bias_, statistics_.mean(), statistics_.var(),
                                        is_training(), statistics_.momentum(), eps_}),
                       inputs[0]);
}

LayerNorm::LayerNorm(const Config& config, const LayerSpec& spec)
    : eps_(config.get<double>("eps")), width_(width_of(spec)) {
  if (!config.get<bool>("affine"))
    return;
  weight_ = register_parameter("weight", at::ones({width_}, spec.dtype));
  bias_ = register_parameter("bias", at::zeros({width_}, spec.dtype));
}

at::Tensor LayerNorm::forward(const Inputs& inputs, LayerContext&) {
  return at::layer_norm(inputs[0], {width_}, weight_, bias_, eps_);
}

std::optional<PlanValue> LayerNorm::lower(PlanBuilder& builder,
                                          std::span<const PlanValue> inputs) const {
  return builder.apply(plan_layer_norm(weight_, bias_, width_, eps_), inputs[0]);
}

RmsNorm::RmsNorm(const Config& config, const LayerSpec& spec)
    : eps_(config.get<double>("eps")),
      weight_(register_parameter("weight", at::ones({width_of(spec)}, spec.dtype))) {}

at::Tensor RmsNorm::forward(const Inputs& inputs, LayerContext&) {
  return rms_norm(inputs[0], weight_, eps_);
}

std::optional<PlanValue> RmsNorm::lower(PlanBuilder& builder,
                                        std::span<const PlanValue> inputs) const {
  return builder.apply(plan_rms_norm(weight_, eps_), inputs[0]);
}

GroupNorm::GroupNorm(const Config& config, const LayerSpec& spec)
    : groups_(config.get<std::int64_t>("num_groups")), eps_(config.get<double>("eps")) {
  const std::int64_t channels = channels_of(spec);
  if (channels % groups_ != 0) {
    throw DataError("has " + std::to_string(groups_) + " groups, which do not divide the " +
                    std::to_string(channels) + " channels it is given");
  }
  if (!config.get<bool>("affine"))
    return;
  weight_ = register_parameter("weight", at::ones({channels}, spec.dtype));
  bias_ = register_parameter("bias", at::zeros({channels}, spec.dtype));
}

at::Tensor GroupNorm::forward(const Inputs& inputs, LayerContext&) {
  return at::group_norm(inputs[0], groups_, weight_, bias_, eps_, /*cudnn_enabled=*/true);
}

std::optional<PlanValue> GroupNorm::lower(PlanBuilder& builder,
                                          std::span<const PlanValue> inputs) const {
  return builder.apply(plan_group_norm(weight_, bias_, groups_, eps_), inputs[0]);
}

InstanceNorm::InstanceNorm(const Config& config, const LayerSpec& spec)
    : channels_(channels_of(spec)), eps_(config.get<double>("eps")) {
  const TensorSpec& input =
      expect_at_least(spec, 3, "channels and their positions [B, channels, positions...]");
  if (std::all_of(input.sizes.begin() + 2, input.sizes.end(),
                  [](std::int64_t size) { return size == 1; })) {
    throw DataError("normalizes over the positions of each channel, of which " + input.text() +
                    " has one: every result would be 0; use layer_norm or batch_norm");
  }
  if (!config.get<bool>("affine"))
    return;
  weight_ = register_parameter("weight", at::ones({channels_}, spec.dtype));
  bias_ = register_parameter("bias", at::zeros({channels_}, spec.dtype));
}

at::Tensor InstanceNorm::forward(const Inputs& inputs, LayerContext&) {
  // Groups of one channel. at::instance_norm() is the same by way of batch norm, of a batch of one.
  return at::group_norm(inputs[0], channels_, weight_, bias_, eps_, /*cudnn_enabled=*/true);
}

std::optional<PlanValue> InstanceNorm::lower(PlanBuilder& builder,
                                             std::span<const PlanValue> inputs) const {
  return builder.apply(plan_group_norm(weight_, bias_, channels_, eps_), inputs[0]);
}

}  // namespace treadle::layers

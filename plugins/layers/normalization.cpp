#include "normalization.h"

#include <algorithm>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include <ATen/ops/batch_norm.h>
#include <ATen/ops/group_norm.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/native_batch_norm.h>
#include <ATen/ops/native_batch_norm_backward.h>
#include <ATen/ops/native_layer_norm.h>
#include <ATen/ops/native_layer_norm_backward.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <treadle/base/error.h>
#include <treadle/plan/folding.h>
#include <treadle/plan/lowerable.h>

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

class LayerNormOp final : public PlanOp {
 public:
  LayerNormOp(at::Tensor weight, at::Tensor bias, std::int64_t width, double eps)
      : weight_(std::move(weight)), bias_(std::move(bias)), width_(width), eps_(eps) {}

  std::string_view name() const override { return "layer_norm"; }
  bool allocates() const override { return true; }

  /// Mean and reciprocal deviation of each position.
  std::vector<TensorSpec> keeps(std::span<const TensorSpec>) const override {
    return std::vector<TensorSpec>(2);
  }

  void forward(const Inputs& inputs, at::Tensor& output,
               std::span<at::Tensor> kept) const override {
    std::tie(output, kept[0], kept[1]) =
        at::native_layer_norm(inputs[0], {width_}, weight_, bias_, eps_);
  }

  void backward(const PlanGradients& gradients) const override {
    const bool has_weights = weight_.defined();
    const bool of_weight = has_weights && gradients.of_parameters[0].defined();
    const bool of_bias = has_weights && gradients.of_parameters[1].defined();
    auto [input, weight, bias] = at::native_layer_norm_backward(
        gradients.of_output, gradients.inputs[0], {width_}, gradients.kept[0], gradients.kept[1],
        weight_, bias_, {gradients.wanted[0], of_weight, of_bias});
    gradients.of_inputs[0] = std::move(input);
    if (of_weight)
      gradients.of_parameters[0].add_(weight);
    if (of_bias)
      gradients.of_parameters[1].add_(bias);
  }

  std::vector<at::Tensor> parameters() const override {
    return weight_.defined() ? std::vector{weight_, bias_} : std::vector<at::Tensor>();
  }

 private:
  at::Tensor weight_;
  at::Tensor bias_;
  std::int64_t width_;
  double eps_;
};

class BatchNormOp final : public PlanOp, public MapsChannels {
 public:
  BatchNormOp(std::vector<at::Tensor> weights, std::vector<at::Tensor> running, bool training,
              double momentum, double eps)
      : weights_(std::move(weights)),
        running_(std::move(running)),
        training_(training),
        momentum_(momentum),
        eps_(eps) {}

  std::string_view name() const override { return "batch_norm"; }
  bool allocates() const override { return true; }

  /// Mean and reciprocal deviation of each channel.
  std::vector<TensorSpec> keeps(std::span<const TensorSpec>) const override {
    return std::vector<TensorSpec>(2);
  }

  void forward(const Inputs& inputs, at::Tensor& output,
               std::span<at::Tensor> kept) const override {
    std::tie(output, kept[0], kept[1]) = at::native_batch_norm(
        inputs[0], weights_[0], weights_[1], running_[0], running_[1], training_, momentum_, eps_);
  }

  void backward(const PlanGradients& gradients) const override {
    const bool of_weight = gradients.of_parameters[0].defined();
    const bool of_bias = gradients.of_parameters[1].defined();
    auto [input, weight, bias] = at::native_batch_norm_backward(
        gradients.of_output, gradients.inputs[0], weights_[0], running_[0], running_[1],
        gradients.kept[0], gradients.kept[1], training_, eps_,
        {gradients.wanted[0], of_weight, of_bias});
    gradients.of_inputs[0] = std::move(input);
    if (of_weight)
      gradients.of_parameters[0].add_(weight);
    if (of_bias)
      gradients.of_parameters[1].add_(bias);
  }

  std::vector<at::Tensor> parameters() const override { return weights_; }

  std::optional<ChannelMap> channel_map() const override {
    if (training_)
      return std::nullopt;
    const at::NoGradGuard no_gradients;
    const auto exactly = [](const at::Tensor& tensor) { return tensor.to(at::kDouble); };
    const at::Tensor scale = exactly(weights_[0]).mul(at::rsqrt(exactly(running_[1]).add(eps_)));
    return ChannelMap{1, scale, exactly(weights_[1]).sub(exactly(running_[0]).mul(scale))};
  }

 private:
  std::vector<at::Tensor> weights_;  // weight, bias
  std::vector<at::Tensor> running_;  // mean, variance
  bool training_;
  double momentum_;
  double eps_;
};

}  // namespace

BatchNorm::BatchNorm(const Config& config, const LayerSpec& spec)
    : eps_(config.get<double>("eps")), momentum_(config.get<double>("momentum")) {
  const std::int64_t channels = channels_of(spec);
  weight_ = register_parameter("weight", at::ones({channels}, spec.dtype));
  bias_ = register_parameter("bias", at::zeros({channels}, spec.dtype));
  running_mean_ = register_buffer("running_mean", at::zeros({channels}, spec.dtype));
  running_var_ = register_buffer("running_var", at::ones({channels}, spec.dtype));
}

at::Tensor BatchNorm::forward(const Inputs& inputs, LayerContext&) {
  const at::Tensor& values = inputs[0];
  if (is_training() && values.numel() == values.size(1)) {
    throw TrainingError(
        "batch norm cannot train on one value a channel; choose a batch_size that leaves no single "
        "row over, set "
        "\"drop_last\" or use layer_norm");
  }
  return at::batch_norm(values, weight_, bias_, running_mean_, running_var_, is_training(),
                        momentum_, eps_,
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
  return builder.apply(std::make_shared<BatchNormOp>(std::vector{weight_, bias_},
                                                     std::vector{running_mean_, running_var_},
                                                     is_training(), momentum_, eps_),
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
  return builder.apply(std::make_shared<LayerNormOp>(weight_, bias_, width_, eps_), inputs[0]);
}

RmsNorm::RmsNorm(const Config& config, const LayerSpec& spec)
    : eps_(config.get<double>("eps")),
      weight_(register_parameter("weight", at::ones({width_of(spec)}, spec.dtype))) {}

at::Tensor RmsNorm::forward(const Inputs& inputs, LayerContext&) {
  const at::Tensor& x = inputs[0];
  return x.mul(at::rsqrt(x.square().mean(-1, /*keepdim=*/true).add(eps_))).mul(weight_);
}

GroupNorm::GroupNorm(const Config& config, const LayerSpec& spec)
    : groups_(config.get<std::int64_t>("groups")), eps_(config.get<double>("eps")) {
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

}  // namespace treadle::layers

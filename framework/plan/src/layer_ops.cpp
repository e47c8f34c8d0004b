#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include <ATen/ExpandUtils.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/native_batch_norm.h>
#include <ATen/ops/native_batch_norm_backward.h>
#include <ATen/ops/native_group_norm.h>
#include <ATen/ops/native_group_norm_backward.h>
#include <ATen/ops/native_layer_norm.h>
#include <ATen/ops/native_layer_norm_backward.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/rsqrt.h>
#include <c10/core/GradMode.h>

#include <treadle/core/model/model.h>
#include <treadle/plan/folding.h>
#include <treadle/plan/ops.h>

// Normalization and dropout, with the kernels that autograd would run.

namespace treadle {
namespace {

class LayerNorm final : public PlanOp {
 public:
  LayerNorm(at::Tensor weight, at::Tensor bias, std::int64_t width, double eps)
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

class BatchNorm final : public PlanOp, public MapsChannels {
 public:
  explicit BatchNorm(const PlanBatchNorm& norm) : norm_(norm) {}

  std::string_view name() const override { return "batch_norm"; }
  bool allocates() const override { return true; }

  /// Mean and reciprocal deviation of each channel.
  std::vector<TensorSpec> keeps(std::span<const TensorSpec>) const override {
    return std::vector<TensorSpec>(2);
  }

  void forward(const Inputs& inputs, at::Tensor& output,
               std::span<at::Tensor> kept) const override {
    std::tie(output, kept[0], kept[1]) =
        at::native_batch_norm(inputs[0], norm_.weight, norm_.bias, norm_.running_mean,
                              norm_.running_var, norm_.training, norm_.momentum, norm_.eps);
  }

  void backward(const PlanGradients& gradients) const override {
    const bool of_weight = gradients.of_parameters[0].defined();
    const bool of_bias = gradients.of_parameters[1].defined();
    auto [input, weight, bias] = at::native_batch_norm_backward(
        gradients.of_output, gradients.inputs[0], norm_.weight, norm_.running_mean,
        norm_.running_var, gradients.kept[0], gradients.kept[1], norm_.training, norm_.eps,
        {gradients.wanted[0], of_weight, of_bias});
    gradients.of_inputs[0] = std::move(input);
    if (of_weight)
      gradients.of_parameters[0].add_(weight);
    if (of_bias)
      gradients.of_parameters[1].add_(bias);
  }

  std::vector<at::Tensor> parameters() const override { return {norm_.weight, norm_.bias}; }

  std::optional<ChannelMap> channel_map() const override {
    if (norm_.training)
      return std::nullopt;
    const at::NoGradGuard no_gradients;
    const auto exactly = [](const at::Tensor& tensor) { return tensor.to(at::kDouble); };
    const at::Tensor scale =
        exactly(norm_.weight).mul(at::rsqrt(exactly(norm_.running_var).add(norm_.eps)));
    return ChannelMap{1, scale, exactly(norm_.bias).sub(exactly(norm_.running_mean).mul(scale))};
  }

 private:
  PlanBatchNorm norm_;
};

class GroupNorm final : public PlanOp {
 public:
  GroupNorm(at::Tensor weight, at::Tensor bias, std::int64_t groups, double eps)
      : weight_(std::move(weight)), bias_(std::move(bias)), groups_(groups), eps_(eps) {}

  std::string_view name() const override { return "group_norm"; }
  bool allocates() const override { return true; }

  /// Mean and reciprocal deviation of each group of each row.
  std::vector<TensorSpec> keeps(std::span<const TensorSpec>) const override {
    return std::vector<TensorSpec>(2);
  }

  void forward(const Inputs& inputs, at::Tensor& output,
               std::span<at::Tensor> kept) const override {
    const at::Tensor x = inputs[0].contiguous();
    std::tie(output, kept[0], kept[1]) =
        at::native_group_norm(x, weight_, bias_, x.size(0), x.size(1), behind(x), groups_, eps_);
  }

  void backward(const PlanGradients& gradients) const override {
    const bool has_weights = weight_.defined();
    const bool of_weight = has_weights && gradients.of_parameters[0].defined();
    const bool of_bias = has_weights && gradients.of_parameters[1].defined();
    const at::Tensor x = gradients.inputs[0].contiguous();
    auto [input, weight, bias] = at::native_group_norm_backward(
        gradients.of_output, x, gradients.kept[0], gradients.kept[1], weight_, x.size(0), x.size(1),
        behind(x), groups_, {gradients.wanted[0], of_weight, of_bias});
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
  /// Elements of a channel of a row.
  static std::int64_t behind(const at::Tensor& x) {
    std::int64_t count = 1;
    for (std::int64_t dim = 2; dim < x.dim(); ++dim)
      count *= x.size(dim);
    return count;
  }

  at::Tensor weight_;
  at::Tensor bias_;
  std::int64_t groups_;
  double eps_;
};

/// The operators of x · rsqrt(mean(x²) + eps) · weight, and of their gradients as autograd chains
/// them, each of which rounds once.
class RmsNorm final : public PlanOp {
 public:
  RmsNorm(at::Tensor weight, double eps) : weight_(std::move(weight)), eps_(eps) {}

  std::string_view name() const override { return "rms_norm"; }
  TensorSpec result(std::span<const TensorSpec> inputs) const override { return inputs[0]; }

  /// 1 / sqrt(mean(x²) + eps) of each position.
  std::vector<TensorSpec> keeps(std::span<const TensorSpec> inputs) const override {
    TensorSpec factor = inputs[0];
    factor.sizes.back() = 1;
    return {factor};
  }

  void forward(const Inputs& inputs, at::Tensor& output,
               std::span<at::Tensor> kept) const override {
    const at::Tensor& x = inputs[0];
    at::pow_out(output, x, 2);
    at::mean_out(kept[0], output, at::IntArrayRef{-1}, /*keepdim=*/true);
    kept[0].add_(eps_).rsqrt_();
    at::mul_out(output, x, kept[0]).mul_(weight_);
  }

  void backward(const PlanGradients& gradients) const override {
    const at::Tensor& x = gradients.inputs[0];
    const at::Tensor& factor = gradients.kept[0];
    const at::Tensor& gradient = gradients.of_output;
    if (gradients.of_parameters[0].defined()) {
      gradients.of_parameters[0].add_(
          at::sum_to(gradient.mul(x.mul(factor)), weight_.detach().sizes()));
    }
    if (!gradients.wanted[0])
      return;
    const at::Tensor of_scaled = gradient.mul(weight_);
    const at::Tensor of_factor = at::sum_to(of_scaled.mul(x), factor.sizes());
    const at::Tensor of_squares = of_factor.mul(-0.5).mul(factor.pow(3)).div(x.size(-1));
    at::mul_out(gradients.of_inputs[0], of_scaled, factor).add_(x.mul(2).mul_(of_squares));
  }

  std::vector<at::Tensor> parameters() const override { return {weight_}; }

 private:
  at::Tensor weight_;
  double eps_;
};

class Dropout final : public PlanOp {
 public:
  explicit Dropout(double rate) : left_(1 - rate) {}

  std::string_view name() const override { return "dropout"; }
  TensorSpec result(std::span<const TensorSpec> inputs) const override { return inputs[0]; }
  Reads backward_reads() const override { return {.inputs = false, .output = false}; }
  bool draws() const override { return true; }

  /// What each element is multiplied with.
  std::vector<TensorSpec> keeps(std::span<const TensorSpec> inputs) const override {
    return {inputs[0]};
  }

  void forward(const Inputs& inputs, at::Tensor& output,
               std::span<at::Tensor> kept) const override {
    kept[0].bernoulli_(left_).div_(left_);
    at::mul_out(output, inputs[0], kept[0]);
  }

  void backward(const PlanGradients& gradients) const override {
    if (gradients.wanted[0])
      at::mul_out(gradients.of_inputs[0], gradients.of_output, gradients.kept[0]);
  }

 private:
  double left_;
};

}  // namespace

std::shared_ptr<const PlanOp> plan_batch_norm(const PlanBatchNorm& norm) {
  return std::make_shared<BatchNorm>(norm);
}

std::shared_ptr<const PlanOp> plan_layer_norm(const at::Tensor& weight, const at::Tensor& bias,
                                              std::int64_t width, double eps) {
  return std::make_shared<LayerNorm>(weight, bias, width, eps);
}

std::shared_ptr<const PlanOp> plan_rms_norm(const at::Tensor& weight, double eps) {
  return std::make_shared<RmsNorm>(weight, eps);
}

std::shared_ptr<const PlanOp> plan_group_norm(const at::Tensor& weight, const at::Tensor& bias,
                                              std::int64_t groups, double eps) {
  return std::make_shared<GroupNorm>(weight, bias, groups, eps);
}

std::shared_ptr<const PlanOp> plan_dropout(double rate) {
  return std::make_shared<Dropout>(rate);
}

}  // namespace treadle

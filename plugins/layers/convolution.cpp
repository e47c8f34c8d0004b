#include "convolution.h"

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>

#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/conv1d.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/conv3d.h>
#include <ATen/ops/conv_transpose1d.h>
#include <ATen/ops/conv_transpose2d.h>
#include <ATen/ops/conv_transpose3d.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/empty.h>

#include <treadle/base/error.h>
#include <treadle/plan/folding.h>
#include <treadle/plan/lowerable.h>
#include <treadle/tensor/torch_versions.h>

#include "initialisers.h"
#include "shapes.h"

namespace treadle::layers {
namespace {

constexpr std::array<std::string_view, 4> kWanted{"", "sequences [B, channels, length]",
                                                  "images [B, channels, height, width]",
                                                  "volumes [B, channels, depth, height, width]"};

bool is_padded(const Config& config, const char* how) {
  return config.json().at("padding") == how;
}

void expect_groups(const Config& config, std::int64_t channels, std::int64_t groups) {
  if (channels % groups != 0) {
    config.fail("out_channels", "must be a multiple of \"groups\", " + std::to_string(groups) +
                                    ", got " + std::to_string(channels));
  }
}

void expect_input_groups(std::int64_t in, std::int64_t groups) {
  if (in % groups != 0) {
    throw DataError("has " + std::to_string(groups) + " groups, which do not divide the " +
                    std::to_string(in) + " channels it is given");
  }
}

class ConvolutionOp final : public PlanOp, public TakesChannelMap {
 public:
  ConvolutionOp(at::Tensor weight, at::Tensor bias, std::vector<std::int64_t> stride,
                std::vector<std::int64_t> padding, std::vector<std::int64_t> dilation,
                std::int64_t groups)
      : weight_(std::move(weight)),
        bias_(std::move(bias)),
        stride_(std::move(stride)),
        padding_(std::move(padding)),
        dilation_(std::move(dilation)),
        no_output_padding_(stride_.size(), 0),
        groups_(groups) {}

  std::string_view name() const override { return "convolution"; }
  // The kernels that write where they are told compute elsewhere and copy.
  bool allocates() const override { return true; }

  void forward(const Inputs& inputs, at::Tensor& output, std::span<at::Tensor>) const override {
    output = at::convolution(inputs[0], weight_, bias_, stride_, padding_, dilation_,
                             /*transposed=*/false, no_output_padding_, groups_);
  }

  void backward(const PlanGradients& gradients) const override {
    const bool of_weight = gradients.of_parameters[0].defined();
    const bool of_bias = bias_.defined() && gradients.of_parameters[1].defined();
    auto [input, weight, bias] = at::convolution_backward(
        gradients.of_output, gradients.inputs[0], weight_,
        bias_.defined() ? at::OptionalIntArrayRef(bias_.sizes()) : at::OptionalIntArrayRef(),
        stride_, padding_, dilation_, /*transposed=*/false, no_output_padding_, groups_,
        {gradients.wanted[0], of_weight, of_bias});
    gradients.of_inputs[0] = std::move(input);
    if (of_weight)
      gradients.of_parameters[0].add_(weight);
    if (of_bias)
      gradients.of_parameters[1].add_(bias);
  }

  std::vector<at::Tensor> parameters() const override {
    return bias_.defined() ? std::vector{weight_, bias_} : std::vector{weight_};
  }

  std::shared_ptr<const PlanOp> followed_by(const ChannelMap& map,
                                            const TensorSpec&) const override {
    if (map.dim != 1)
      return nullptr;
    const auto [weight, bias] = fold_channel_map(map, weight_, bias_);
    return std::make_shared<ConvolutionOp>(weight, bias, stride_, padding_, dilation_, groups_);
  }

 private:
  at::Tensor weight_;
  at::Tensor bias_;
  std::vector<std::int64_t> stride_;
  std::vector<std::int64_t> padding_;
  std::vector<std::int64_t> dilation_;
  std::vector<std::int64_t> no_output_padding_;
  std::int64_t groups_;
};

}  // namespace

template <std::size_t kDimensions>
void Convolution<kDimensions>::check(const Config& config) {
  const auto kernel = per_dimension(config, "kernel_size", kDimensions);
  const auto stride = per_dimension(config, "stride", kDimensions);
  per_dimension(config, "dilation", kDimensions);
  expect_groups(config, config.get<std::int64_t>("out_channels"),
                config.get<std::int64_t>("groups"));
  if (is_padded(config, "causal"))
    return;
  if (!is_padded(config, "same")) {
    per_dimension(config, "padding", kDimensions);
    return;
  }
  for (std::size_t i = 0; i < kDimensions; ++i) {
    if (stride[i] != 1)
      config.fail("padding", "can be \"same\" only where \"stride\" is 1");
    if (kernel[i] % 2 == 0)
      config.fail("padding", "can be \"same\" only where \"kernel_size\" is odd");
  }
}

template <std::size_t kDimensions>
Convolution<kDimensions>::Convolution(const Config& config, const LayerSpec& spec)
    : stride_(per_dimension(config, "stride", kDimensions)),
      dilation_(per_dimension(config, "dilation", kDimensions)),
      groups_(config.get<std::int64_t>("groups")) {
  only_input(spec);
  const std::int64_t in = expect_dimensions(spec, kDimensions + 2, kWanted[kDimensions]).sizes[1];
  expect_input_groups(in, groups_);
  const auto channels = config.get<std::int64_t>("out_channels");
  const auto kernel = per_dimension(config, "kernel_size", kDimensions);
  if (is_padded(config, "causal")) {
    padding_.assign(kDimensions, 0);
    zeros_in_front_ = dilation_[0] * (kernel[0] - 1);
  } else if (is_padded(config, "same")) {
    for (std::size_t i = 0; i < kDimensions; ++i)
      padding_.push_back(dilation_[i] * (kernel[i] - 1) / 2);
  } else {
    padding_ = per_dimension(config, "padding", kDimensions);
  }
  std::vector<std::int64_t> sizes{channels, in / groups_};
  sizes.insert(sizes.end(), kernel.begin(), kernel.end());
  weight_ = register_parameter("weight", at::empty(sizes, spec.dtype));
  if (config.get<bool>("bias"))
    bias_ = register_parameter("bias", at::empty({channels}, spec.dtype));
  initialise(initialiser_of(config), weight_, bias_);
}

template <std::size_t kDimensions>
at::Tensor Convolution<kDimensions>::forward(const Inputs& inputs, LayerContext& context) {
  return forward_with(weight_, inputs, context);
}

template <std::size_t kDimensions>
at::Tensor Convolution<kDimensions>::forward_with(const at::Tensor& weight, const Inputs& inputs,
                                                  LayerContext&) {
  if constexpr (kDimensions == 1) {
    const at::Tensor x =
        zeros_in_front_ > 0 ? at::constant_pad_nd(inputs[0], {zeros_in_front_, 0}) : inputs[0];
    return at::conv1d(x, weight, bias_, stride_, padding_, dilation_, groups_);
  } else if constexpr (kDimensions == 2) {
    return at::conv2d(inputs[0], weight, bias_, stride_, padding_, dilation_, groups_);
  } else {
    return at::conv3d(inputs[0], weight, bias_, stride_, padding_, dilation_, groups_);
  }
}

template <std::size_t kDimensions>
std::optional<PlanValue> Convolution<kDimensions>::lower(PlanBuilder& builder,
                                                         std::span<const PlanValue> inputs) const {
  const PlanValue x =
      zeros_in_front_ > 0 ? builder.apply(plan_pad({zeros_in_front_, 0}, 0), inputs[0]) : inputs[0];
  return builder.apply(
      std::make_shared<ConvolutionOp>(weight_, bias_, stride_, padding_, dilation_, groups_), x);
}

template <std::size_t kDimensions>
void TransposedConvolution<kDimensions>::check(const Config& config) {
  per_dimension(config, "kernel_size", kDimensions);
  per_dimension(config, "padding", kDimensions);
  const auto stride = per_dimension(config, "stride", kDimensions);
  const auto dilation = per_dimension(config, "dilation", kDimensions);
  const auto output_padding = per_dimension(config, "output_padding", kDimensions);
  expect_groups(config, config.get<std::int64_t>("out_channels"),
                config.get<std::int64_t>("groups"));
  for (std::size_t i = 0; i < kDimensions; ++i) {
    if (output_padding[i] >= std::max(stride[i], dilation[i]))
      config.fail("output_padding", "must be less than \"stride\" or \"dilation\"");
  }
}

template <std::size_t kDimensions>
TransposedConvolution<kDimensions>::TransposedConvolution(const Config& config,
                                                          const LayerSpec& spec)
    : stride_(per_dimension(config, "stride", kDimensions)),
      padding_(per_dimension(config, "padding", kDimensions)),
      output_padding_(per_dimension(config, "output_padding", kDimensions)),
      dilation_(per_dimension(config, "dilation", kDimensions)),
      groups_(config.get<std::int64_t>("groups")) {
  only_input(spec);
  const std::int64_t in = expect_dimensions(spec, kDimensions + 2, kWanted[kDimensions]).sizes[1];
  expect_input_groups(in, groups_);
  const auto channels = config.get<std::int64_t>("out_channels");
  std::vector<std::int64_t> sizes{in, channels / groups_};
  const auto kernel = per_dimension(config, "kernel_size", kDimensions);
  sizes.insert(sizes.end(), kernel.begin(), kernel.end());
  weight_ = register_parameter("weight", at::empty(sizes, spec.dtype));
  if (config.get<bool>("bias"))
    bias_ = register_parameter("bias", at::empty({channels}, spec.dtype));
  initialise(initialiser_of(config), weight_, bias_);
}

template <std::size_t kDimensions>
at::Tensor TransposedConvolution<kDimensions>::forward(const Inputs& inputs,
                                                       LayerContext& context) {
  return forward_with(weight_, inputs, context);
}

template <std::size_t kDimensions>
at::Tensor TransposedConvolution<kDimensions>::forward_with(const at::Tensor& weight,
                                                            const Inputs& inputs, LayerContext&) {
  const at::Tensor& input = inputs[0];
  const bool is_half = weight.element_size() == 2;
  if (torch_versions::kHasNarrowTransposedConvolutions || !is_half || !input.is_cpu())
    return convolve(input, weight, bias_);
  const at::Tensor bias = bias_.defined() ? bias_.to(at::kFloat) : bias_;
  return convolve(input.to(at::kFloat), weight.to(at::kFloat), bias).to(input.scalar_type());
}

template <std::size_t kDimensions>
at::Tensor TransposedConvolution<kDimensions>::convolve(const at::Tensor& input,
                                                        const at::Tensor& weight,
                                                        const at::Tensor& bias) const {
  if constexpr (kDimensions == 1) {
    return at::conv_transpose1d(input, weight, bias, stride_, padding_, output_padding_, groups_,
                                dilation_);
  } else if constexpr (kDimensions == 2) {
    return at::conv_transpose2d(input, weight, bias, stride_, padding_, output_padding_, groups_,
                                dilation_);
  } else {
    return at::conv_transpose3d(input, weight, bias, stride_, padding_, output_padding_, groups_,
                                dilation_);
  }
}

template class Convolution<1>;
template class Convolution<2>;
template class Convolution<3>;
template class TransposedConvolution<1>;
template class TransposedConvolution<2>;
template class TransposedConvolution<3>;

}  // namespace treadle::layers

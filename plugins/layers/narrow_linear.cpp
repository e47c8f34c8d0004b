#include "narrow_linear.h"

#include <array>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include <treadle/base/error.h>
#include <treadle/core/model/linear.h>
#include <treadle/tensor/autocast.h>
#include <treadle/tensor/float8.h>

namespace treadle::layers {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr std::int64_t kBlock = 16;

/// Values rounded to NVFP4 and back, in blocks along the last dimension.
at::Tensor rounded_to_nvfp4(const at::Tensor& given) {
  if (given.numel() == 0)
    return given;
  const at::Tensor values = given.to(at::kFloat);
  const std::int64_t width = values.size(-1);
  const std::int64_t missing = (kBlock - width % kBlock) % kBlock;
  std::vector<std::int64_t> sizes = values.sizes().slice(0, values.dim() - 1).vec();
  sizes.push_back((width + missing) / kBlock);
  sizes.push_back(kBlock);
  const at::Tensor blocks = at::constant_pad_nd(values, {0, missing}).view(sizes);
  // Of zeros it is not 0, by which nothing can be divided.
  const at::Tensor tensor_scale = values.abs()
                                      .amax()
                                      .div(static_cast<double>(kE4M3.largest) * kE2M1.largest)
                                      .clamp_min(std::numeric_limits<float>::min());
  const at::Tensor block_scale = rounded_to(
      kE4M3, blocks.abs().amax(-1, /*keepdim=*/true).div(kE2M1.largest).div(tensor_scale));
  const at::Tensor scale = block_scale.mul(tensor_scale);
  // Blocks whose numbers are 0, or so small that their scale is.
  const at::Tensor scaled = at::where(scale.eq(0), at::zeros_like(blocks), blocks.div(scale));
  const at::Tensor left =
      at::where(scale.eq(0), at::zeros_like(blocks), rounded_to(kE2M1, scaled).mul(scale));
  return left.flatten(-2).narrow(-1, 0, width).to(given.scalar_type());
}

/// As if rounding had the slope 1.
class RoundedStraightThrough : public torch::autograd::Function<RoundedStraightThrough> {
 public:
  static at::Tensor forward(AutogradContext*, const at::Tensor& values) {
    return rounded_to_nvfp4(values);
  }
  static variable_list backward(AutogradContext*, variable_list gradients) { return gradients; }
};

struct NamedScaling {
  std::string_view name;
  Float8Scaling scaling;
};

constexpr std::array kScalings{NamedScaling{"tensorwise", Float8Scaling::kTensorwise},
                               NamedScaling{"rowwise", Float8Scaling::kRowwise}};

Float8Scaling scaling_named(std::string_view name) {
  for (const NamedScaling& one : kScalings) {
    if (one.name == name)
      return one.scaling;
  }
  // The schema has already refused other names; this catches a schema and a table that disagree.
  throw ContractViolation("fp8_linear has no recipe \"" + std::string(name) + "\"");
}

}  // namespace

Float8Linear::Float8Linear(const Config& config, const LayerSpec& spec)
    : Dense(config, spec), scaling_(scaling_named(config.get<std::string>("recipe"))) {}

at::Tensor Float8Linear::forward_with(const at::Tensor& weight, const Inputs& inputs,
                                      LayerContext&) {
  return float8_linear(inputs[0], weight, bias(), scaling_);
}

std::optional<PlanValue> Float8Linear::lower(PlanBuilder&, std::span<const PlanValue>) const {
  return std::nullopt;
}

at::Tensor NvFp4Linear::forward_with(const at::Tensor& weight, const Inputs& inputs,
                                     LayerContext&) {
  const AutocastScope no_autocast{Autocast()};
  return at::linear(RoundedStraightThrough::apply(inputs[0].to(weight.scalar_type())),
                    RoundedStraightThrough::apply(weight), bias());
}

std::optional<PlanValue> NvFp4Linear::lower(PlanBuilder&, std::span<const PlanValue>) const {
  return std::nullopt;
}

}  // namespace treadle::layers

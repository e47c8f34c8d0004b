#include "gated_feed_forward.h"

#include <array>
#include <string>
#include <string_view>

#include <ATen/ops/dropout.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/silu.h>

#include <treadle/base/error.h>
#include <treadle/core/model/linear.h>
#include <treadle/plan/ops.h>

#include "initialisers.h"

namespace treadle::layers {

struct GateActivation {
  std::string_view name;
  at::Tensor (*forward)(const at::Tensor& gate);
  PlanValue (*lower)(PlanBuilder& builder, PlanValue gate);
};

namespace {

constexpr std::array kGateActivations{
    GateActivation{
        "silu", [](const at::Tensor& gate) { return at::silu(gate); },
        [](PlanBuilder& builder, PlanValue gate) { return builder.apply(plan_silu(), gate); }},
    GateActivation{
        "gelu", [](const at::Tensor& gate) { return at::gelu(gate); },
        [](PlanBuilder& builder, PlanValue gate) { return builder.apply(plan_gelu(), gate); }},
    GateActivation{"relu", [](const at::Tensor& gate) { return at::relu(gate); },
                   [](PlanBuilder& builder, PlanValue gate) {
                     return builder.elementwise(ElementwiseOp::kRelu, gate);
                   }},
    GateActivation{
        "sigmoid", [](const at::Tensor& gate) { return at::sigmoid(gate); },
        [](PlanBuilder& builder, PlanValue gate) { return builder.apply(plan_sigmoid(), gate); }},
    GateActivation{"identity", [](const at::Tensor& gate) { return gate; },
                   [](PlanBuilder&, PlanValue gate) { return gate; }}};

const GateActivation& gate_activation(std::string_view name) {
  for (const GateActivation& activation : kGateActivations) {
    if (activation.name == name)
      return activation;
  }
  TREADLE_EXPECTS(false, "the schema lists the same names");
  return kGateActivations.front();
}

}  // namespace

GatedFeedForward::GatedFeedForward(const Config& config, const LayerSpec& spec)
    : activation_(gate_activation(config.get<std::string>("activation"))),
      dropout_(config.get<double>("dropout")) {
  only_input(spec);
  const std::int64_t width = expect_at_least(spec, 2, "rows of numbers [B, width]").width();
  const auto hidden = config.get<std::int64_t>("hidden_features");
  const bool has_bias = config.get<bool>("bias");
  const Initialiser inner = initialiser_of(config);
  const auto made = [&](const std::string& name, std::int64_t out, std::int64_t in,
                        const Initialiser& rule) {
    Map map;
    map.weight = register_parameter(name + "_weight", at::empty({out, in}, spec.dtype));
    if (has_bias)
      map.bias = register_parameter(name + "_bias", at::empty({out}, spec.dtype));
    initialise(rule, map.weight, map.bias);
    return map;
  };
  gate_ = made("gate", hidden, width, inner);
  up_ = made("up", hidden, width, inner);
  down_ = made("down", config.get_or<std::int64_t>("out_features", width), hidden,
               residual_initialiser_of(config));
}

at::Tensor GatedFeedForward::forward(const Inputs& inputs, LayerContext&) {
  const auto through = [](const Map& map, const at::Tensor& x) {
    return linear_in_precision(x, map.weight, map.bias);
  };
  at::Tensor hidden = activation_.forward(through(gate_, inputs[0])).mul(through(up_, inputs[0]));
  if (dropout_ > 0)
    hidden = at::dropout(hidden, dropout_, is_training());
  return through(down_, hidden);
}

std::optional<PlanValue> GatedFeedForward::lower(PlanBuilder& builder,
                                                 std::span<const PlanValue> inputs) const {
  // With a bias, libtorch multiplies more dimensions in another way.
  const std::size_t dimensions = builder.spec(inputs[0]).sizes.size();
  if (dimensions != 2 && dimensions != 3)
    return std::nullopt;
  const auto through = [&](const Map& map, PlanValue x) {
    return builder.apply(plan_linear(map.weight, map.bias), x);
  };
  // In the order of forward(), so that gradients of the input meet in the same order.
  const PlanValue gate = activation_.lower(builder, through(gate_, inputs[0]));
  PlanValue hidden = builder.elementwise(ElementwiseOp::kMultiply, gate, through(up_, inputs[0]));
  if (dropout_ > 0 && is_training())
    hidden = builder.apply(plan_dropout(dropout_), hidden);
  return through(down_, hidden);
}

}  // namespace treadle::layers

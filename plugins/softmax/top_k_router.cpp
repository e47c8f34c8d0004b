#include "top_k_router.h"

#include <cmath>
#include <tuple>

#include <ATen/ops/logsumexp.h>
#include <ATen/ops/randn_like.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/topk.h>
#include <ATen/ops/zeros.h>

#include <treadle/base/error.h>
#include <treadle/core/components/plugin_registry.h>
#include <treadle/core/model/abilities/keeps_state.h>
#include <treadle/core/model/linear.h>

#include "linear_map.h"
#include "simplex.h"

namespace treadle::softmax {
namespace {

/// int64 [k, tokens, N]: 1 where the token's k-th choice is the expert.
at::Tensor choices(const at::Tensor& p, std::int64_t k) {
  const at::Tensor chosen = std::get<1>(at::topk(p, k, -1)).t().unsqueeze(-1);
  const at::Tensor none = at::zeros({k, p.size(0), p.size(1)}, chosen.options());
  return none.scatter(-1, chosen, 1);
}

}  // namespace

TopKRouter::TopKRouter(const Config& config, const LayerSpec& spec, std::shared_ptr<Layer> softmax)
    : experts_(config.get<std::int64_t>("num_experts")),
      top_k_(config.get<std::int64_t>("top_k")),
      temperature_(config.get<double>("temperature")),
      noise_(config.get<double>("noise")),
      capacity_factor_(config.get_or<double>("capacity_factor", 0)),
      balance_coefficient_(config.get<double>("balance_coefficient")),
      z_coefficient_(config.get<double>("z_coefficient")),
      // Divided by itself a single weight would be 1, and its router would learn nothing.
      normalizes_(config.get_or<bool>("normalize", top_k_ > 1)) {
  const LinearMap map = initial_linear(spec.inputs.front().width(), experts_, spec.dtype);
  weight_ = register_parameter("weight", map.weight);
  bias_ = register_parameter("bias", map.bias);
  if (softmax != nullptr)
    softmax_ = register_module("softmax", std::move(softmax));
}

at::Tensor TopKRouter::logits(const Inputs& inputs) const {
  at::Tensor x = inputs[0];
  for (const at::Tensor& more : inputs.subspan(1))
    x = x.add(more);
  at::Tensor logits = linear_in_precision(x, weight_, bias_);
  if (is_training() && noise_ > 0)
    logits = logits.add(at::randn_like(logits).mul(noise_));
  return logits.div(temperature_);
}

at::Tensor TopKRouter::forward(const Inputs& inputs, LayerContext& context) {
  const at::Tensor z = logits(inputs);
  const at::Tensor p =
      softmax_ == nullptr ? at::softmax(z, -1) : softmax_->forward(Inputs(&z, 1), context);
  const at::Tensor flat = p.reshape({-1, experts_});
  const std::int64_t tokens = flat.size(0);
  const at::Tensor chosen = choices(flat.detach(), top_k_);
  const at::Tensor left_out = chosen.sum(0).eq(0);
  at::Tensor weights = flat.masked_fill(left_out, 0);
  if (normalizes_) {
    const at::Tensor sum = weights.sum(-1, /*keepdim=*/true);
    weights = weights.div(sum.masked_fill(sum.eq(0), 1));
  }
  at::Tensor taken = chosen;
  if (is_training() && capacity_factor_ > 0) {
    const auto capacity = static_cast<std::int64_t>(std::ceil(
        capacity_factor_ * static_cast<double>(top_k_ * tokens) / static_cast<double>(experts_)));
    const at::Tensor places = chosen.reshape({-1, experts_}).cumsum(0).view(chosen.sizes());
    taken = chosen.mul(places.le(capacity));
    weights = weights.masked_fill(taken.sum(0).eq(0), 0);
  }
  if (tokens > 0 && (context.takes_losses() || context.is_logging())) {
    const at::Tensor wide = widened(flat);
    const at::Tensor share =
        chosen.sum(at::IntArrayRef{0, 1}).to(wide.scalar_type()).div(top_k_ * tokens);
    if (context.is_logging()) {
      context.log("load_min", share, Reduction::kMin);
      context.log("load_max", share, Reduction::kMax);
      context.log("dropped", taken.sum().to(at::kDouble).div(top_k_ * tokens).neg().add(1));
    }
    const auto rows = static_cast<double>(inputs[0].size(0));
    if (z_coefficient_ > 0 && context.takes_losses()) {
      const at::Tensor size = at::logsumexp(widened(z), at::IntArrayRef{-1}).square().mean();
      context.add_loss("z", size.mul(z_coefficient_ * rows));
    }
    if (balance_coefficient_ > 0 && context.takes_losses()) {
      context.add_loss("balance",
                       share.mul(wide.mean(0))
                           .sum()
                           .mul(balance_coefficient_ * static_cast<double>(experts_) * rows));
    }
  }
  return weights.reshape(p.sizes());
}

std::vector<std::string> TopKRouter::loss_names() const {
  std::vector<std::string> names;
  if (z_coefficient_ > 0)
    names.emplace_back("z");
  if (balance_coefficient_ > 0)
    names.emplace_back("balance");
  return names;
}

std::vector<std::string> TopKRouter::logged_names() const {
  return {"load_min", "load_max", "dropped"};
}

TopKRouterFactory::TopKRouterFactory(const Config& config, const ComponentContext& context)
    : config_(config), softmax_(make_nested<LayerFactory>(context, config, "softmax")) {
  const auto top_k = config.get<std::int64_t>("top_k");
  const auto experts = config.get<std::int64_t>("num_experts");
  if (top_k > experts) {
    config.fail("top_k", "is " + std::to_string(top_k) + ", more than the " +
                             std::to_string(experts) + " of \"num_experts\"");
  }
}

std::shared_ptr<Layer> TopKRouterFactory::do_create(const LayerSpec& spec) const {
  const TensorSpec& stream = spec.inputs.front();
  if (stream.sizes.size() < 2 || stream.sizes.back() == TensorSpec::kVaries)
    throw DataError("takes rows [B, ..., width] of a known width, got " + stream.text());
  std::shared_ptr<Layer> softmax;
  if (softmax_ != nullptr) {
    LayerSpec of_logits = spec;
    of_logits.inputs = {stream};
    of_logits.inputs[0].sizes.back() = config_.get<std::int64_t>("num_experts");
    softmax = softmax_->create(of_logits);
    const auto* state = dynamic_cast<const KeepsState*>(softmax.get());
    if (dynamic_cast<const AddsLosses*>(softmax.get()) != nullptr ||
        dynamic_cast<const LogsValues*>(softmax.get()) != nullptr ||
        (state != nullptr && state->keeps_state())) {
      throw DataError("takes a \"softmax\" that has no state, no losses and no logged values");
    }
    const TensorSpec given = softmax->result(of_logits.inputs);
    if (given.sizes != of_logits.inputs[0].sizes) {
      throw DataError("takes a \"softmax\" of weights " + of_logits.inputs[0].text() + ", got " +
                      given.text());
    }
  }
  return std::make_shared<TopKRouter>(config_, spec, std::move(softmax));
}

}  // namespace treadle::softmax

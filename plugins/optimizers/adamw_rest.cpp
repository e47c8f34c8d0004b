#include "adamw_rest.h"

#include <cmath>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/pow.h>

#include "element_type.h"
#include "flat_rules.h"
#include "runs.h"

namespace treadle::optimizers {

AdamWRest::AdamWRest(const Config& config)
    : eps_(config.get<double>("adamw_eps")),
      weight_decay_(config.get<double>("adamw_weight_decay")) {
  const auto betas = config.get<std::vector<double>>("adamw_betas");
  beta1_ = betas.at(0);
  beta2_ = betas.at(1);
}

// As AdamRule, with the same roundings.
void AdamWRest::update(const ParameterPiece& layer, const at::Tensor& rate, at::ScalarType dtype,
                       std::size_t first_moment, std::size_t second_moment) const {
  const at::Tensor& p = layer.parameters();
  const at::Tensor& g = layer.gradients();
  const at::Tensor m = beta1_ * layer.slot(first_moment) + (1 - beta1_) * g;
  const at::Tensor v =
      beta2_ * layer.slot(second_moment) + (1 - beta2_) * (g * g).view({g.numel()});
  const at::Tensor step = rate / (1 - at::pow(beta1_, layer.updates()));
  const at::Tensor root_correction = 1 / (1 - at::pow(beta2_, layer.updates())).sqrt();
  const at::Tensor root = (v.sqrt() * root_correction + above_zero(eps_, dtype)).view(p.sizes());
  at::Tensor move = step * (m / root);
  if (weight_decay_ != 0)
    move = rate * weight_decay_ * p + move;
  layer.set_slot(first_moment, m);
  layer.set_slot(second_moment, v);
  layer.set_parameters(p - move);
}

void AdamWRest::update(const HostParameters& host, std::size_t index, double rate,
                       std::size_t first_moment, std::size_t second_moment) const {
  with_element_type(host, [&]<typename T>(T) {
    const Segment& segment = host.segments()[index];
    const double count = host.updates()[index];
    const AdamRule<T> rule{
        .scale = static_cast<T>(host.info().gradient_scale),
        .l2 = 0,
        .beta1 = static_cast<T>(beta1_),
        .one_minus_beta1 = static_cast<T>(1 - beta1_),
        .beta2 = static_cast<T>(beta2_),
        .one_minus_beta2 = static_cast<T>(1 - beta2_),
        .shrink = static_cast<T>(rate * weight_decay_),
        .step = static_cast<T>(rate / (1 - std::pow(beta1_, count))),
        .root_correction = static_cast<T>(1 / std::sqrt(1 - std::pow(beta2_, count))),
        .eps = above_zero<T>(eps_)};
    const Range range = range_of<T>(segment);
    apply(rule,
          Vectors<T>{host.parameters<T>() + range.begin,
                     host.gradients<T>() + range.begin,
                     {host.elements<T>(first_moment) + range.begin,
                      host.elements<T>(second_moment, index)}},
          Range{0, range.end - range.begin});
  });
}

}  // namespace treadle::optimizers

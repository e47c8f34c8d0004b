#include "lamb.h"

#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/where.h>

#include "element_type.h"
#include "flat_rules.h"
#include "runs.h"

namespace treadle::optimizers {

namespace {

double trust(const SquaredNorms& norms) {
  return norms.parameters > 0 && norms.update > 0 ? std::sqrt(norms.parameters / norms.update) : 1;
}

}  // namespace

Lamb::Lamb(const Config& config)
    : learning_rate_(config.get<double>("learning_rate")),
      eps_(config.get<double>("eps")),
      weight_decay_(config.get<double>("weight_decay")) {
  const auto betas = config.get<std::vector<double>>("betas");
  beta1_ = betas.at(0);
  beta2_ = betas.at(1);
}

std::vector<SlotSpec> Lamb::do_slots() const {
  return {{"first_moment", SlotSpec::Kind::kPerElement, 0},
          {"second_moment", SlotSpec::Kind::kPerElement, 0}};
}

void Lamb::do_update(ParameterView& view) const {
  const HostParameters* const host = view.host();
  if (host == nullptr)
    return update_tensors(view);
  with_element_type(*host, [&]<typename T>(T) { update_as<T>(*host); });
}

// As LambRule. Norms are summed in another order than on the host.
void Lamb::update_tensors(ParameterView& view) const {
  const double eps = above_zero(eps_, view.dtype());
  const auto norm = [](const at::Tensor& values) {
    const at::Tensor wide = values.to(at::kDouble);
    return (wide * wide).sum().sqrt();
  };
  for (const ParameterPiece& layer : view.layers()) {
    const at::Tensor& p = layer.parameters();
    const at::Tensor& g = layer.gradients();
    const at::Tensor m = beta1_ * layer.slot(kFirstMoment) + (1 - beta1_) * g;
    const at::Tensor v = beta2_ * layer.slot(kSecondMoment) + (1 - beta2_) * (g * g);
    const at::Tensor correction = 1 / (1 - at::pow(beta1_, layer.updates()));
    const at::Tensor root_correction = 1 / (1 - at::pow(beta2_, layer.updates())).sqrt();
    const at::Tensor u = correction * m / (v.sqrt() * root_correction + eps) + weight_decay_ * p;
    const at::Tensor its_norm = norm(p);
    const at::Tensor move_norm = norm(u);
    const at::Tensor trust = at::where(its_norm.gt(0).logical_and(move_norm.gt(0)),
                                       its_norm / move_norm, at::ones_like(its_norm));
    layer.set_slot(kFirstMoment, m);
    layer.set_slot(kSecondMoment, v);
    layer.set_parameters(p - view.learning_rate() * trust * u);
  }
}

template <typename T>
void Lamb::update_as(const HostParameters& host) const {
  LambRule<T> rule{.scale = static_cast<T>(host.info().gradient_scale),
                   .beta1 = static_cast<T>(beta1_),
                   .one_minus_beta1 = static_cast<T>(1 - beta1_),
                   .beta2 = static_cast<T>(beta2_),
                   .one_minus_beta2 = static_cast<T>(1 - beta2_),
                   .correction = 0,
                   .root_correction = 0,
                   .eps = above_zero<T>(eps_),
                   .decay = static_cast<T>(weight_decay_),
                   .step = 0};
  const Vectors<T> vectors{host.parameters<T>(),
                           host.gradients<T>(),
                           {host.elements<T>(kFirstMoment), host.elements<T>(kSecondMoment)}};
  const double* counts = host.updates().data();
  double corrected_for = 0;  // segments usually have one count: two powers an update, not a segment
  for (const Segment& segment : host.segments()) {
    const double count = *counts++;
    if (!segment.active())
      continue;
    if (count != corrected_for) {
      corrected_for = count;
      rule.correction = static_cast<T>(1 / (1 - std::pow(beta1_, count)));
      rule.root_correction = static_cast<T>(1 / std::sqrt(1 - std::pow(beta2_, count)));
    }
    const Range layer = range_of<T>(segment);
    rule.step = static_cast<T>(host.info().learning_rate * trust(lamb_norms(rule, vectors, layer)));
    apply(rule, vectors, layer);
  }
}

}  // namespace treadle::optimizers

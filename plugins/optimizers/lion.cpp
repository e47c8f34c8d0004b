#include "lion.h"

#include <ATen/TensorOperators.h>

#include "element_type.h"
#include "flat_rules.h"
#include "runs.h"

namespace treadle::optimizers {

Lion::Lion(const Config& config)
    : learning_rate_(config.get<double>("learning_rate")),
      weight_decay_(config.get<double>("weight_decay")) {
  const auto betas = config.get<std::vector<double>>("betas");
  beta1_ = betas.at(0);
  beta2_ = betas.at(1);
}

std::vector<SlotSpec> Lion::do_slots() const {
  return {{"momentum", SlotSpec::Kind::kPerElement, 0}};
}

void Lion::do_update(ParameterView& view) const {
  const HostParameters* const host = view.host();
  if (host == nullptr)
    return update_tensors(view);
  with_element_type(*host, [&]<typename T>(T) { update_as<T>(*host); });
}

// As LionRule, with the same roundings.
void Lion::update_tensors(ParameterView& view) const {
  for (const ParameterPiece& run : view.runs()) {
    const at::Tensor& p = run.parameters();
    const at::Tensor& g = run.gradients();
    const at::Tensor& m = run.slot(kMomentum);
    const at::Tensor move = view.learning_rate() * (beta1_ * m + (1 - beta1_) * g).sign();
    const at::Tensor next = beta2_ * m + (1 - beta2_) * g;
    run.set_parameters(p - (view.learning_rate() * weight_decay_ * p + move));
    run.set_slot(kMomentum, next);
  }
}

template <typename T>
void Lion::update_as(const HostParameters& host) const {
  const LionRule<T> rule{.scale = static_cast<T>(host.info().gradient_scale),
                         .rate = static_cast<T>(host.info().learning_rate),
                         .beta1 = static_cast<T>(beta1_),
                         .one_minus_beta1 = static_cast<T>(1 - beta1_),
                         .beta2 = static_cast<T>(beta2_),
                         .one_minus_beta2 = static_cast<T>(1 - beta2_),
                         .shrink = static_cast<T>(host.info().learning_rate * weight_decay_)};
  const Vectors<T> vectors{
      host.parameters<T>(), host.gradients<T>(), {host.elements<T>(kMomentum)}};
  for_each_run<T>(host.segments(), [&](Range run) { apply(rule, vectors, run); });
}

}  // namespace treadle::optimizers

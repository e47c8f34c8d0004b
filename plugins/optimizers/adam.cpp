#include "adam.h"

#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/pow.h>

#include "element_type.h"
#include "flat_rules.h"
#include "runs.h"

namespace treadle::optimizers {

AdamFamily::AdamFamily(const Config& config, Decay decay, Moments moments)
    : decay_(decay),
      moments_(moments),
      learning_rate_(config.get<double>("learning_rate")),
      eps_(config.get<double>("eps")),
      weight_decay_(config.get<double>("weight_decay")) {
  const auto betas = config.get<std::vector<double>>("betas");
  beta1_ = betas.at(0);
  beta2_ = betas.at(1);
}

std::vector<SlotSpec> AdamFamily::do_slots() const {
  using Storage = SlotSpec::Storage;
  const bool is_full = moments_ == Moments::kFull;
  return {{"first_moment", SlotSpec::Kind::kPerElement, 0,
           is_full ? Storage::kFull : Storage::kEightBits},
          {"second_moment", SlotSpec::Kind::kPerElement, 0,
           is_full ? Storage::kFull : Storage::kEightBitsNoSign}};
}

void AdamFamily::do_update(ParameterView& view) const {
  const HostParameters* const host = view.host();
  if (host == nullptr || moments_ == Moments::kEightBits)
    return update_tensors(view);
  with_element_type(*host, [&]<typename T>(T) { update_as<T>(*host); });
}

// As AdamRule, with the same roundings.
void AdamFamily::update_tensors(ParameterView& view) const {
  const bool direct = decay_ == Decay::kDirect;
  const double eps = above_zero(eps_, view.dtype());
  for (const ParameterPiece& run : view.runs()) {
    const at::Tensor& p = run.parameters();
    const at::Tensor g =
        direct || weight_decay_ == 0 ? run.gradients() : run.gradients() + weight_decay_ * p;
    const at::Tensor m = beta1_ * run.slot(kFirstMoment) + (1 - beta1_) * g;
    const at::Tensor v = beta2_ * run.slot(kSecondMoment) + (1 - beta2_) * (g * g);
    const at::Tensor step = view.learning_rate() / (1 - at::pow(beta1_, run.updates()));
    const at::Tensor root_correction = 1 / (1 - at::pow(beta2_, run.updates())).sqrt();
    at::Tensor move = step * (m / (v.sqrt() * root_correction + eps));
    if (direct && weight_decay_ != 0)
      move = view.learning_rate() * weight_decay_ * p + move;
    run.set_slot(kFirstMoment, m);
    run.set_slot(kSecondMoment, v);
    run.set_parameters(p - move);
  }
}

template <typename T>
void AdamFamily::update_as(const HostParameters& host) const {
  const bool direct = decay_ == Decay::kDirect;
  AdamRule<T> rule{.scale = static_cast<T>(host.info().gradient_scale),
                   .l2 = static_cast<T>(direct ? 0 : weight_decay_),
                   .beta1 = static_cast<T>(beta1_),
                   .one_minus_beta1 = static_cast<T>(1 - beta1_),
                   .beta2 = static_cast<T>(beta2_),
                   .one_minus_beta2 = static_cast<T>(1 - beta2_),
                   .shrink = static_cast<T>(direct ? host.info().learning_rate * weight_decay_ : 0),
                   .step = 0,
                   .root_correction = 0,
                   .eps = above_zero<T>(eps_)};
  const Vectors<T> vectors{host.parameters<T>(),
                           host.gradients<T>(),
                           {host.elements<T>(kFirstMoment), host.elements<T>(kSecondMoment)}};
  for_each_run_of_one_count<T>(host.segments(), host.updates(), [&](Range run, double count) {
    rule.step = static_cast<T>(host.info().learning_rate / (1 - std::pow(beta1_, count)));
    rule.root_correction = static_cast<T>(1 / std::sqrt(1 - std::pow(beta2_, count)));
    apply(rule, vectors, run);
  });
}

}  // namespace treadle::optimizers

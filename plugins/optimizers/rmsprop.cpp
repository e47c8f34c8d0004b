#include "rmsprop.h"

#include <ATen/TensorOperators.h>

#include "element_type.h"
#include "flat_rules.h"
#include "runs.h"

namespace treadle::optimizers {

RmsProp::RmsProp(const Config& config)
    : learning_rate_(config.get<double>("learning_rate")),
      alpha_(config.get<double>("alpha")),
      eps_(config.get<double>("eps")),
      eps_inside_root_(config.get<bool>("eps_inside_root")),
      momentum_(config.get<double>("momentum")),
      centered_(config.get<bool>("centered")),
      weight_decay_(config.get<double>("weight_decay")) {}

// In the order of RmsPropRule's.
std::vector<SlotSpec> RmsProp::do_slots() const {
  std::vector<SlotSpec> slots = {{"square_average", SlotSpec::Kind::kPerElement, 0}};
  if (centered_)
    slots.push_back({"gradient_average", SlotSpec::Kind::kPerElement, 0});
  if (momentum_ > 0)
    slots.push_back({"momentum", SlotSpec::Kind::kPerElement, 0});
  return slots;
}

void RmsProp::do_update(ParameterView& view) const {
  const HostParameters* const host = view.host();
  if (host == nullptr)
    return update_tensors(view);
  with_element_type(*host, [&]<typename T>(T) {
    if (centered_) {
      momentum_ > 0 ? update_as<T, true, true>(*host) : update_as<T, true, false>(*host);
    } else {
      momentum_ > 0 ? update_as<T, false, true>(*host) : update_as<T, false, false>(*host);
    }
  });
}

// As RmsPropRule, with the same roundings.
void RmsProp::update_tensors(ParameterView& view) const {
  const double eps = above_zero(eps_, view.dtype());
  const std::size_t average = 1;
  const std::size_t momentum = centered_ ? 2 : 1;
  for (const ParameterPiece& run : view.runs()) {
    const at::Tensor& p = run.parameters();
    const at::Tensor g = weight_decay_ == 0 ? run.gradients() : run.gradients() + weight_decay_ * p;
    const at::Tensor v = alpha_ * run.slot(0) + (1 - alpha_) * (g * g);
    at::Tensor spread = v;
    if (centered_) {
      const at::Tensor a = alpha_ * run.slot(average) + (1 - alpha_) * g;
      spread = (v - a * a).clamp_min(0);
      run.set_slot(average, a);
    }
    at::Tensor direction = eps_inside_root_ ? g / (spread + eps).sqrt() : g / (spread.sqrt() + eps);
    if (momentum_ > 0) {
      direction = momentum_ * run.slot(momentum) + direction;
      run.set_slot(momentum, direction);
    }
    run.set_slot(0, v);
    run.set_parameters(p - view.learning_rate() * direction);
  }
}

template <typename T, bool kCentered, bool kMomentum>
void RmsProp::update_as(const HostParameters& host) const {
  const T eps = above_zero<T>(eps_);
  const RmsPropRule<T, kCentered, kMomentum> rule{
      .scale = static_cast<T>(host.info().gradient_scale),
      .l2 = static_cast<T>(weight_decay_),
      .rate = static_cast<T>(host.info().learning_rate),
      .alpha = static_cast<T>(alpha_),
      .one_minus_alpha = static_cast<T>(1 - alpha_),
      .inside = eps_inside_root_ ? eps : 0,
      .outside = eps_inside_root_ ? 0 : eps,
      .momentum = static_cast<T>(momentum_)};
  Vectors<T> vectors{host.parameters<T>(), host.gradients<T>()};
  for (std::size_t slot = 0; slot < 1 + kCentered + kMomentum; ++slot)
    vectors.slots[slot] = host.elements<T>(slot);
  for_each_run<T>(host.segments(), [&](Range run) { apply(rule, vectors, run); });
}

}  // namespace treadle::optimizers

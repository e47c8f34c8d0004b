#include "sgd.h"

#include <ATen/TensorOperators.h>

#include "element_type.h"
#include "flat_rules.h"
#include "runs.h"

namespace treadle::optimizers {

Sgd::Sgd(const Config& config)
    : learning_rate_(config.get<double>("learning_rate")),
      momentum_(config.get<double>("momentum")),
      dampening_(config.get<double>("dampening")),
      weight_decay_(config.get<double>("weight_decay")),
      nesterov_(config.get<bool>("nesterov")) {
  if (nesterov_ && (momentum_ == 0 || dampening_ != 0))
    config.fail("nesterov", "needs \"momentum\" above 0 and \"dampening\" 0");
  if (dampening_ != 0 && momentum_ == 0)
    config.fail("dampening", "has no effect without \"momentum\" above 0");
}

std::vector<SlotSpec> Sgd::do_slots() const {
  if (momentum_ == 0)
    return {};
  return {{"momentum", SlotSpec::Kind::kPerElement, 0}};
}

void Sgd::do_update(ParameterView& view) const {
  const HostParameters* const host = view.host();
  if (host == nullptr)
    return update_tensors(view);
  with_element_type(*host, [&]<typename T>(T) {
    if (momentum_ == 0)
      descend<T>(*host);
    else
      roll<T>(*host);
  });
}

// As DescentRule and MomentumRule, with the same roundings.
void Sgd::update_tensors(ParameterView& view) const {
  for (const ParameterPiece& run : view.runs()) {
    const at::Tensor& p = run.parameters();
    const at::Tensor g = weight_decay_ == 0 ? run.gradients() : run.gradients() + weight_decay_ * p;
    if (momentum_ == 0) {
      run.set_parameters(p - view.learning_rate() * g);
      continue;
    }
    const at::Tensor is_later = run.updates().gt(1).to(at::kDouble);  // the first momentum is g
    const at::Tensor b =
        momentum_ * is_later * run.slot(kMomentum) + (1 - dampening_ * is_later) * g;
    run.set_slot(kMomentum, b);
    run.set_parameters(p - view.learning_rate() * (nesterov_ ? g + momentum_ * b : b));
  }
}

template <typename T>
void Sgd::descend(const HostParameters& host) const {
  const DescentRule<T> rule{.scale = static_cast<T>(host.info().gradient_scale),
                            .l2 = static_cast<T>(weight_decay_),
                            .rate = static_cast<T>(host.info().learning_rate)};
  const Vectors<T> vectors{host.parameters<T>(), host.gradients<T>()};
  for_each_run<T>(host.segments(), [&](Range run) { apply(rule, vectors, run); });
}

template <typename T>
void Sgd::roll(const HostParameters& host) const {
  const MomentumRule<T> later{.scale = static_cast<T>(host.info().gradient_scale),
                              .l2 = static_cast<T>(weight_decay_),
                              .rate = static_cast<T>(host.info().learning_rate),
                              .keep = static_cast<T>(momentum_),
                              .take = static_cast<T>(1 - dampening_),
                              .direct = static_cast<T>(nesterov_ ? 1 : 0),
                              .along = static_cast<T>(nesterov_ ? momentum_ : 1)};
  MomentumRule<T> first = later;
  first.keep = 0;
  first.take = 1;
  const Vectors<T> vectors{
      host.parameters<T>(), host.gradients<T>(), {host.elements<T>(kMomentum)}};
  for_each_run_of_one_count<T>(host.segments(), host.updates(), [&](Range run, double count) {
    apply(count == 1 ? first : later, vectors, run);
  });
}

}  // namespace treadle::optimizers

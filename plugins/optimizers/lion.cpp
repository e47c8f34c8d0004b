#include "lion.h"

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

void Lion::do_update(Block& block, const StepInfo& info) const {
  with_element_type(block, [&]<typename T>(T) { update_as<T>(block, info); });
}

template <typename T>
void Lion::update_as(Block& block, const StepInfo& info) const {
  const LionRule<T> rule{.scale = static_cast<T>(info.gradient_scale),
                         .rate = static_cast<T>(info.learning_rate),
                         .beta1 = static_cast<T>(beta1_),
                         .one_minus_beta1 = static_cast<T>(1 - beta1_),
                         .beta2 = static_cast<T>(beta2_),
                         .one_minus_beta2 = static_cast<T>(1 - beta2_),
                         .shrink = static_cast<T>(info.learning_rate * weight_decay_)};
  const Vectors<T> vectors{
      block.parameters<T>(), block.gradients<T>(), {block.elements<T>(kMomentum)}};
  for_each_run<T>(block.segments(), [&](Range run) { apply(rule, vectors, run); });
}

}  // namespace treadle::optimizers

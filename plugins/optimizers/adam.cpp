#include "adam.h"

#include <cmath>

#include "element_type.h"
#include "flat_rules.h"
#include "runs.h"

namespace treadle::optimizers {

AdamFamily::AdamFamily(const Config& config, Decay decay)
    : decay_(decay),
      learning_rate_(config.get<double>("learning_rate")),
      eps_(config.get<double>("eps")),
      weight_decay_(config.get<double>("weight_decay")) {
  const auto betas = config.get<std::vector<double>>("betas");
  beta1_ = betas.at(0);
  beta2_ = betas.at(1);
}

std::vector<SlotSpec> AdamFamily::do_slots() const {
  return {{"first_moment", SlotSpec::Kind::kPerElement, 0},
          {"second_moment", SlotSpec::Kind::kPerElement, 0},
          {"steps", SlotSpec::Kind::kPerSegment, 0}};
}

void AdamFamily::do_update(Block& block, const StepInfo& info) const {
  with_element_type(block, [&]<typename T>(T) { update_as<T>(block, info); });
}

template <typename T>
void AdamFamily::update_as(Block& block, const StepInfo& info) const {
  const bool direct = decay_ == Decay::kDirect;
  AdamRule<T> rule{.scale = static_cast<T>(info.gradient_scale),
                   .l2 = static_cast<T>(direct ? 0 : weight_decay_),
                   .beta1 = static_cast<T>(beta1_),
                   .one_minus_beta1 = static_cast<T>(1 - beta1_),
                   .beta2 = static_cast<T>(beta2_),
                   .one_minus_beta2 = static_cast<T>(1 - beta2_),
                   .shrink = static_cast<T>(direct ? info.learning_rate * weight_decay_ : 0),
                   .step = 0,
                   .root_correction = 0,
                   .eps = above_zero<T>(eps_)};
  const Vectors<T> vectors{block.parameters<T>(),
                           block.gradients<T>(),
                           {block.elements<T>(kFirstMoment), block.elements<T>(kSecondMoment)}};
  for_each_run_of_one_age<T>(block.segments(), block.numbers(kSteps), [&](Range run, double age) {
    rule.step = static_cast<T>(info.learning_rate / (1 - std::pow(beta1_, age)));
    rule.root_correction = static_cast<T>(1 / std::sqrt(1 - std::pow(beta2_, age)));
    apply(rule, vectors, run);
  });
}

}  // namespace treadle::optimizers

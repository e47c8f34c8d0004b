#include "sgd.h"

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
  return {{"momentum", SlotSpec::Kind::kPerElement, 0}, {"steps", SlotSpec::Kind::kPerSegment, 0}};
}

void Sgd::do_update(Block& block, const StepInfo& info) const {
  with_element_type(block, [&]<typename T>(T) {
    if (momentum_ == 0)
      descend<T>(block, info);
    else
      roll<T>(block, info);
  });
}

template <typename T>
void Sgd::descend(Block& block, const StepInfo& info) const {
  const DescentRule<T> rule{.scale = static_cast<T>(info.gradient_scale),
                            .l2 = static_cast<T>(weight_decay_),
                            .rate = static_cast<T>(info.learning_rate)};
  const Vectors<T> vectors{block.parameters<T>(), block.gradients<T>()};
  for_each_run<T>(block.segments(), [&](Range run) { apply(rule, vectors, run); });
}

template <typename T>
void Sgd::roll(Block& block, const StepInfo& info) const {
  const MomentumRule<T> later{.scale = static_cast<T>(info.gradient_scale),
                              .l2 = static_cast<T>(weight_decay_),
                              .rate = static_cast<T>(info.learning_rate),
                              .keep = static_cast<T>(momentum_),
                              .take = static_cast<T>(1 - dampening_),
                              .direct = static_cast<T>(nesterov_ ? 1 : 0),
                              .along = static_cast<T>(nesterov_ ? momentum_ : 1)};
  MomentumRule<T> first = later;
  first.keep = 0;
  first.take = 1;
  const Vectors<T> vectors{
      block.parameters<T>(), block.gradients<T>(), {block.elements<T>(kMomentum)}};
  for_each_run_of_one_age<T>(block.segments(), block.numbers(kSteps), [&](Range run, double age) {
    apply(age == 1 ? first : later, vectors, run);
  });
}

}  // namespace treadle::optimizers

#include "rmsprop.h"

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

void RmsProp::do_update(Block& block, const StepInfo& info) const {
  with_element_type(block, [&]<typename T>(T) {
    if (centered_) {
      momentum_ > 0 ? update_as<T, true, true>(block, info)
                    : update_as<T, true, false>(block, info);
    } else {
      momentum_ > 0 ? update_as<T, false, true>(block, info)
                    : update_as<T, false, false>(block, info);
    }
  });
}

template <typename T, bool kCentered, bool kMomentum>
void RmsProp::update_as(Block& block, const StepInfo& info) const {
  const T eps = above_zero<T>(eps_);
  const RmsPropRule<T, kCentered, kMomentum> rule{.scale = static_cast<T>(info.gradient_scale),
                                                  .l2 = static_cast<T>(weight_decay_),
                                                  .rate = static_cast<T>(info.learning_rate),
                                                  .alpha = static_cast<T>(alpha_),
                                                  .one_minus_alpha = static_cast<T>(1 - alpha_),
                                                  .inside = eps_inside_root_ ? eps : 0,
                                                  .outside = eps_inside_root_ ? 0 : eps,
                                                  .momentum = static_cast<T>(momentum_)};
  Vectors<T> vectors{block.parameters<T>(), block.gradients<T>()};
  for (std::size_t slot = 0; slot < 1 + kCentered + kMomentum; ++slot)
    vectors.slots[slot] = block.elements<T>(slot);
  for_each_run<T>(block.segments(), [&](Range run) { apply(rule, vectors, run); });
}

}  // namespace treadle::optimizers

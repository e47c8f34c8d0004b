#include "adagrad.h"

#include "element_type.h"
#include "flat_rules.h"
#include "runs.h"

namespace treadle::optimizers {

Adagrad::Adagrad(const Config& config)
    : learning_rate_(config.get<double>("learning_rate")),
      learning_rate_decay_(config.get<double>("learning_rate_decay")),
      initial_accumulator_value_(config.get<double>("initial_accumulator_value")),
      eps_(config.get<double>("eps")),
      weight_decay_(config.get<double>("weight_decay")) {}

std::vector<SlotSpec> Adagrad::do_slots() const {
  return {{"square_sum", SlotSpec::Kind::kPerElement, initial_accumulator_value_},
          {"steps", SlotSpec::Kind::kPerSegment, 0}};
}

void Adagrad::do_update(Block& block, const StepInfo& info) const {
  with_element_type(block, [&]<typename T>(T) { update_as<T>(block, info); });
}

template <typename T>
void Adagrad::update_as(Block& block, const StepInfo& info) const {
  AdagradRule<T> rule{.scale = static_cast<T>(info.gradient_scale),
                      .l2 = static_cast<T>(weight_decay_),
                      .rate = 0,
                      .eps = above_zero<T>(eps_)};
  const Vectors<T> vectors{
      block.parameters<T>(), block.gradients<T>(), {block.elements<T>(kSquareSum)}};
  for_each_run_of_one_age<T>(block.segments(), block.numbers(kSteps), [&](Range run, double age) {
    rule.rate = static_cast<T>(info.learning_rate / (1 + (age - 1) * learning_rate_decay_));
    apply(rule, vectors, run);
  });
}

}  // namespace treadle::optimizers

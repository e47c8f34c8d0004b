#include "lamb.h"

#include <cmath>

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
          {"second_moment", SlotSpec::Kind::kPerElement, 0},
          {"steps", SlotSpec::Kind::kPerSegment, 0}};
}

void Lamb::do_update(Block& block, const StepInfo& info) const {
  with_element_type(block, [&]<typename T>(T) { update_as<T>(block, info); });
}

template <typename T>
void Lamb::update_as(Block& block, const StepInfo& info) const {
  LambRule<T> rule{.scale = static_cast<T>(info.gradient_scale),
                   .beta1 = static_cast<T>(beta1_),
                   .one_minus_beta1 = static_cast<T>(1 - beta1_),
                   .beta2 = static_cast<T>(beta2_),
                   .one_minus_beta2 = static_cast<T>(1 - beta2_),
                   .correction = 0,
                   .root_correction = 0,
                   .eps = above_zero<T>(eps_),
                   .decay = static_cast<T>(weight_decay_),
                   .step = 0};
  const Vectors<T> vectors{block.parameters<T>(),
                           block.gradients<T>(),
                           {block.elements<T>(kFirstMoment), block.elements<T>(kSecondMoment)}};
  double* steps = block.numbers(kSteps);
  double corrected_for = 0;  // segments are usually of one age: two powers an update, not a segment
  for (const Segment& segment : block.segments()) {
    double& age = *steps++;
    if (!segment.active())
      continue;
    age += 1;
    if (age != corrected_for) {
      corrected_for = age;
      rule.correction = static_cast<T>(1 / (1 - std::pow(beta1_, age)));
      rule.root_correction = static_cast<T>(1 / std::sqrt(1 - std::pow(beta2_, age)));
    }
    const Range layer = range_of<T>(segment);
    rule.step = static_cast<T>(info.learning_rate * trust(lamb_norms(rule, vectors, layer)));
    apply(rule, vectors, layer);
  }
}

}  // namespace treadle::optimizers

#include "adagrad.h"

#include <ATen/TensorOperators.h>

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
  return {{"square_sum", SlotSpec::Kind::kPerElement, initial_accumulator_value_}};
}

void Adagrad::do_update(ParameterView& view) const {
  const HostParameters* const host = view.host();
  if (host == nullptr)
    return update_tensors(view);
  with_element_type(*host, [&]<typename T>(T) { update_as<T>(*host); });
}

// As AdagradRule, with the same roundings.
void Adagrad::update_tensors(ParameterView& view) const {
  const double eps = above_zero(eps_, view.dtype());
  for (const ParameterPiece& run : view.runs()) {
    const at::Tensor& p = run.parameters();
    const at::Tensor g = weight_decay_ == 0 ? run.gradients() : run.gradients() + weight_decay_ * p;
    const at::Tensor sum = run.slot(kSquareSum) + g * g;
    const at::Tensor rate = view.learning_rate() / (1 + (run.updates() - 1) * learning_rate_decay_);
    run.set_slot(kSquareSum, sum);
    run.set_parameters(p - rate * (g / (sum.sqrt() + eps)));
  }
}

template <typename T>
void Adagrad::update_as(const HostParameters& host) const {
  AdagradRule<T> rule{.scale = static_cast<T>(host.info().gradient_scale),
                      .l2 = static_cast<T>(weight_decay_),
                      .rate = 0,
                      .eps = above_zero<T>(eps_)};
  const Vectors<T> vectors{
      host.parameters<T>(), host.gradients<T>(), {host.elements<T>(kSquareSum)}};
  for_each_run_of_one_count<T>(host.segments(), host.updates(), [&](Range run, double count) {
    rule.rate =
        static_cast<T>(host.info().learning_rate / (1 + (count - 1) * learning_rate_decay_));
    apply(rule, vectors, run);
  });
}

}  // namespace treadle::optimizers

#include "strategies.h"

#include <algorithm>
#include <string>
#include <utility>

#include <ATen/ops/scalar_tensor.h>

#include <treadle/core/plugin_registry.h>

namespace treadle::gradients {
namespace {

at::Tensor weight_of(const LossTerms& terms, const Batch& batch) {
  if (terms.weight.defined())
    return terms.weight;
  return at::scalar_tensor(static_cast<double>(batch.size()), terms.sum.options());
}

}  // namespace

LossTerms BackPropagation::do_add_gradients(const GradientTask& task, const Batch& batch,
                                            ForwardContext& context) const {
  return back_propagate(task, batch, context);
}

OneStep::OneStep(const Config& config, const ComponentContext& context)
    : inner_(make_nested<GradientStrategy>(context, config, "inner")) {}

LossTerms OneStep::do_add_gradients(const GradientTask& task, const Batch& batch,
                                    ForwardContext& context) const {
  const OneStepGradients one_step;
  return inner_->add_gradients(task, batch, context);
}

Accumulation::Accumulation(const Config& config, const ComponentContext& context)
    : parts_(config.get<std::int64_t>("parts")),
      inner_(make_nested<GradientStrategy>(context, config, "inner")) {}

LossTerms Accumulation::do_add_gradients(const GradientTask& task, const Batch& batch,
                                         ForwardContext& context) const {
  const std::int64_t parts = std::clamp<std::int64_t>(batch.size(), 1, parts_);
  LossTerms total;
  ForwardContext of_part;
  of_part.stop = context.stop;
  for (std::int64_t i = 0; i < parts; ++i) {
    const std::int64_t begin = batch.size() * i / parts;
    const Batch part = batch.slice(begin, batch.size() * (i + 1) / parts - begin);
    // Each part carries its own rows' state to the same part of the next batch.
    const std::string name = "part-" + std::to_string(i + 1);
    if (context.carried.has_part(name))
      of_part.carried = context.carried.part(name);
    const LossTerms terms = inner_->add_gradients(task, part, of_part);
    if (!of_part.carried.empty())
      context.carried.put(name, std::exchange(of_part.carried, {}));
    const at::Tensor weight = weight_of(terms, part);
    total.sum = total.sum.defined() ? total.sum + terms.sum : terms.sum;
    total.weight = total.weight.defined() ? total.weight + weight : weight;
  }
  return total;
}

}  // namespace treadle::gradients

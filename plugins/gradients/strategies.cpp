#include "strategies.h"

#include <treadle/core/components/plugin_registry.h>

namespace treadle::gradients {
BatchLoss BackPropagation::do_add_gradients(const GradientTask& task, const Batch& batch,
                                            ForwardContext& context) const {
  return back_propagate(task, batch, context);
}

TruncatedBptt::TruncatedBptt(const Config& config, const ComponentContext& context)
    : inner_(make_nested<GradientStrategy>(context, config, "inner")) {}

BatchLoss TruncatedBptt::do_add_gradients(const GradientTask& task, const Batch& batch,
                                          ForwardContext& context) const {
  const TruncatingBptt one_step(context);
  return inner_->add_gradients(task, batch, context);
}

Accumulation::Accumulation(const Config& config, const ComponentContext& context)
    : parts_(config.get<std::int64_t>("micro_batches")),
      inner_(make_nested<GradientStrategy>(context, config, "inner")) {}

BatchLoss Accumulation::do_add_gradients(const GradientTask& task, const Batch& batch,
                                         ForwardContext& context) const {
  return add_gradients_in_parts(
      task, batch, context, parts_,
      [this](const GradientTask& of_part, const Batch& part, ForwardContext& part_context) {
        return inner_->add_gradients(of_part, part, part_context);
      });
}

}  // namespace treadle::gradients

#include "strategies.h"

#include <algorithm>
#include <string>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/core/plugin_registry.h>

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
  if (!task.objective->is_additive()) {
    throw UsageError(
        "a loss that is computed over whole batches (correlation, Sharpe) has no gradients to "
        "accumulate over parts of them; leave training.gradients out");
  }
  // Scaled for the whole batch: each part's own weights would give it another share.
  const Objective::Scales whole(*task.objective, batch);
  GradientTask of_part = task;
  if (of_part.scales == nullptr)
    of_part.scales = &whole;
  const std::int64_t parts = std::clamp<std::int64_t>(batch.size(), 1, parts_);
  BatchLoss total;
  for (std::int64_t i = 0; i < parts; ++i) {
    const std::int64_t begin = batch.size() * i / parts;
    const Batch part = batch.slice(begin, batch.size() * (i + 1) / parts - begin);
    // Each part hands its own rows' state on to the same part of the next batch.
    const std::string name = "part-" + std::to_string(i + 1);
    ForwardContext part_context = context.part(name);
    total.add(inner_->add_gradients(of_part, part, part_context));
    context.join(name, std::move(part_context));
  }
  return total;
}

}  // namespace treadle::gradients

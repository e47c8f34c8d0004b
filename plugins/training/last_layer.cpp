#include "last_layer.h"

#include <optional>
#include <string>

#include <ATen/ops/one_hot.h>
#include <c10/core/GradMode.h>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/core/model/tensor_spec.h>
#include <treadle/tensor/eval_mode_guard.h>

namespace treadle {
namespace {

/// The outputs to reach for the target's positions, [n, width].
at::Tensor wanted(const at::Tensor& values, const TargetSpec& target, c10::ScalarType dtype) {
  if (target.kind == TargetKind::kClasses)
    return at::one_hot(values, target.class_count()).to(dtype);
  return values.to(dtype);
}

}  // namespace

LastLayer last_layer(TrainingSession& session, const Batch& batch) {
  const Objective& objective = session.objective();
  if (objective.terms().size() != 1) {
    throw DataError("a training in closed form has one loss, got " +
                    std::to_string(objective.terms().size()));
  }
  const at::NoGradGuard no_gradients;
  const EvalModeGuard evaluating(session.model());
  ForwardContext context(session.stop_token(), session.precision());
  context.set_takes_deferred_output(true);
  Outputs outputs(objective.outputs().size());
  session.model()(batch.inputs, outputs, context);
  const std::optional<DeferredOutput>& deferred = context.deferred_output();
  LastLayer layer;
  if (deferred && !deferred->parameters.empty() && deferred->parameters.size() <= 2) {
    layer.weight = deferred->parameters.front();
    if (deferred->parameters.size() == 2)
      layer.bias = deferred->parameters.back();
  }
  const std::int64_t width = objective.outputs().front().width();
  const bool is_linear =
      layer.weight.defined() && layer.weight.dim() == 2 && layer.weight.size(0) == width &&
      layer.weight.size(1) == deferred->features.size(-1) &&
      (!layer.bias.defined() || (layer.bias.dim() == 1 && layer.bias.size(0) == width));
  if (!is_linear) {
    throw DataError(
        "a training in closed form computes the last layer of the model, which must be a \"head\" "
        "or a \"dense\" with one output, and no step may read what it is given");
  }
  const std::size_t index = objective.terms().front().target;
  const TargetSpec& spec = objective.targets()[index];
  const auto target = TargetBatch::transformed(batch, index, spec);
  const bool are_classes = spec.kind == TargetKind::kClasses;
  const std::int64_t target_width = are_classes ? spec.class_count() : spec.width();
  if (target_width != width) {
    throw DataError("a training in closed form has an output for each " +
                    std::string(are_classes ? "class" : "number") + " of the target " +
                    quote_text(spec.name) + ", " + std::to_string(target_width) +
                    ", but the loss requires " + std::to_string(width) + "; choose " +
                    (are_classes ? "\"cross_entropy\"" : "\"mse\""));
  }
  LayerRows& rows = layer.rows;
  rows.features = deferred->features.reshape({-1, layer.weight.size(1)});
  at::Tensor values =
      are_classes ? target.values().reshape({-1}) : target.values().reshape({-1, target_width});
  if (target.weights().defined()) {
    // A position that does not count may have any label.
    const at::Tensor weights = target.weights().reshape({-1});
    const at::Tensor counted = weights.gt(0).nonzero().squeeze(1);
    LayerRows& rows = layer.rows;
    rows.features = rows.features.index_select(0, counted);
    rows.weights = weights.index_select(0, counted);
    values = values.index_select(0, counted);
  }
  rows.targets = wanted(values, spec, rows.features.scalar_type());
  rows.has_bias = layer.bias.defined();
  return layer;
}

}  // namespace treadle

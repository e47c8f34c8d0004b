#include <treadle/engine/evaluation.h>

#include <optional>
#include <vector>

#include <c10/core/GradMode.h>

#include <treadle/base/error.h>

#include "layer_modes.h"

namespace treadle::engine {
EvaluationTotals evaluate(const EvaluationSetup& setup, BatchStream& stream, std::stop_token stop,
                          const std::function<void(const Predictions&, const Batch&)>& visit) {
  const at::NoGradGuard no_gradients;
  // Two threads may evaluate one model: what is in eval mode is not written to.
  std::optional<LayerModes> modes;
  if (setup.model->is_training()) {
    modes.emplace(*setup.model);
    setup.model->eval();
  }
  EvaluationTotals totals;
  ForwardContext context;
  context.stop = stop;
  Outputs outputs;
  Batch batch;
  while (stream.next(batch)) {
    if (stop.stop_requested()) throw Interrupted("stopped while evaluating");
    const Timeline::Span span(setup.timeline, Phase::kMetrics);
    outputs.assign(setup.outputs, at::Tensor());
    (*setup.model)(batch.inputs, outputs, context);
    if (batch.targets.defined()) {
      const LossTerms terms = setup.loss->forward(outputs, batch);
      totals.loss_sum += terms.sum.item<double>();
      totals.loss_weight += terms.weight.defined() ? terms.weight.item<double>()
                                                   : static_cast<double>(batch.size());
    }
    totals.rows += batch.size();
    Predictions predictions = setup.loss->predictions(outputs);
    if (predictions.kind == TargetKind::kNumbers) {
      for (auto transform = setup.transforms.rbegin(); transform != setup.transforms.rend();
           ++transform) {
        predictions.values = (*transform)->invert(predictions.values);
      }
    }
    visit(predictions, batch);
  }
  return totals;
}

EvaluationTotals evaluate_metrics(const EvaluationSetup& setup, BatchStream& stream,
                                  std::stop_token stop, std::span<MetricComputer* const> metrics) {
  for (MetricComputer* metric : metrics) metric->reset();
  return evaluate(setup, stream, stop, [&](const Predictions& predictions, const Batch& batch) {
    for (MetricComputer* metric : metrics) metric->update(predictions, batch);
  });
}

}  // namespace treadle::engine

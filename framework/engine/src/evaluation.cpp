#include <treadle/engine/evaluation.h>

#include <memory>
#include <vector>

#include <c10/core/GradMode.h>

#include <treadle/base/error.h>

namespace treadle::engine {
namespace {

/// Eval mode for as long as it lives. Afterwards each layer has its own mode again: some may be frozen.
class EvalMode {
 public:
  explicit EvalMode(Model& model) : model_(model) {
    // Two threads may evaluate one model: what is in eval mode is not written to.
    if (!model.is_training()) return;
    for (auto& layer : model.modules(/*include_self=*/false)) {
      layers_.push_back({layer, layer->is_training()});
    }
    was_training_ = true;
    model_.eval();
  }
  ~EvalMode() {
    if (!was_training_) return;
    model_.train();
    // A layer comes before those inside it, whose mode it sets as well.
    for (const Layer& layer : layers_) layer.module->train(layer.was_training);
  }
  EvalMode(const EvalMode&) = delete;
  EvalMode& operator=(const EvalMode&) = delete;

 private:
  struct Layer {
    std::shared_ptr<torch::nn::Module> module;
    bool was_training;
  };

  Model& model_;
  bool was_training_ = false;
  std::vector<Layer> layers_;
};

}  // namespace

EvaluationTotals evaluate(const EvaluationSetup& setup, BatchStream& stream, std::stop_token stop,
                          const std::function<void(const Predictions&, const Batch&)>& visit) {
  const at::NoGradGuard no_gradients;
  const EvalMode eval_mode(*setup.model);
  EvaluationTotals totals;
  ForwardContext context;
  context.stop = stop;
  Outputs outputs;
  Batch batch;
  while (stream.next(batch)) {
    if (stop.stop_requested()) throw Interrupted("stopped while evaluating");
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

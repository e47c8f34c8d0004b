#include <treadle/engine/evaluation.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <vector>

#include <c10/core/GradMode.h>
#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/task_arena.h>

#include <treadle/base/error.h>

#include "layer_modes.h"

namespace treadle::engine {
namespace {

namespace flow = oneapi::tbb::flow;

/// A batch and what came of it.
struct Judged {
  Batch batch;
  Predictions predictions;
  double loss_sum = 0;
  double loss_weight = 0;
  std::exception_ptr error;
};

/// On any thread: a model in eval mode is not written to, nor are loss and transforms.
void judge(const EvaluationSetup& setup, ForwardContext& context, Judged& judged) {
  const at::NoGradGuard no_gradients;
  const Timeline::Span span(setup.timeline, Phase::kMetrics);
  Outputs outputs(setup.outputs);
  (*setup.model)(judged.batch.inputs, outputs, context);
  judged.loss_sum = judged.loss_weight = 0;
  if (judged.batch.targets.defined()) {
    const LossTerms terms = setup.loss->forward(outputs, judged.batch);
    judged.loss_sum = terms.sum.item<double>();
    judged.loss_weight = terms.weight.defined() ? terms.weight.item<double>()
                                                : static_cast<double>(judged.batch.size());
  }
  judged.predictions = setup.loss->predictions(outputs);
  if (judged.predictions.kind != TargetKind::kNumbers)
    return;
  for (auto transform = setup.transforms.rbegin(); transform != setup.transforms.rend();
       ++transform) {
    judged.predictions.values = (*transform)->invert(judged.predictions.values);
  }
}

/// How many batches like this one are judged at once. A model needs some times the memory of its
/// inputs.
std::size_t at_once(const Batch& batch) {
  constexpr std::int64_t kInputBytes = std::int64_t{32} << 20;
  std::int64_t bytes = 1;
  for (const at::Tensor& input : batch.inputs)
    bytes += static_cast<std::int64_t>(input.nbytes());
  const std::int64_t workers = oneapi::tbb::this_task_arena::max_concurrency();
  const std::int64_t most = std::min(workers, kMostJudgedAtOnce);
  return static_cast<std::size_t>(std::clamp<std::int64_t>(kInputBytes / bytes, 1, most));
}

}  // namespace

std::int64_t evaluation_batch(std::span<const PortSpec> inputs, c10::ScalarType dtype,
                              std::int64_t least, std::int64_t most) {
  constexpr std::int64_t kInputBytes = std::int64_t{256} << 10;
  std::int64_t row_bytes = 0;
  for (const PortSpec& port : inputs) {
    auto bytes = static_cast<std::int64_t>(c10::elementSize(dtype));
    for (const std::int64_t size : port.shape)
      bytes *= size;
    row_bytes += bytes;
  }
  return std::min(std::max(kInputBytes / std::max<std::int64_t>(row_bytes, 1), least), most);
}

EvaluationTotals evaluate(const EvaluationSetup& setup, BatchStream& stream, std::stop_token stop,
                          const std::function<void(const Predictions&, const Batch&)>& visit) {
  // Two threads may evaluate one model: what is in eval mode is not written to.
  std::optional<LayerModes> modes;
  if (setup.model->is_training()) {
    modes.emplace(*setup.model);
    setup.model->eval();
  }
  const at::NoGradGuard no_gradients;
  EvaluationTotals totals;
  const auto take = [&](Judged& judged) {
    const Timeline::Span span(setup.timeline, Phase::kMetrics);
    totals.loss_sum += judged.loss_sum;
    totals.loss_weight += judged.loss_weight;
    totals.rows += judged.batch.size();
    visit(judged.predictions, judged.batch);
    judged = Judged();  // its memory is needed for a batch to come
  };
  const auto next = [&](Batch& batch) {
    if (!stream.next(batch))
      return false;
    if (stop.stop_requested())
      throw Interrupted("stopped while evaluating");
    return true;
  };

  // What carries nothing from the first batch carries nothing.
  ForwardContext context;
  context.stop = stop;
  Judged first;
  if (!next(first.batch))
    return totals;
  judge(setup, context, first);
  const bool alone = !context.carried.empty();
  std::vector<Judged> round(alone ? 1 : at_once(first.batch));
  take(first);

  flow::graph graph;
  flow::function_node<Judged*> node(graph, flow::unlimited, [&](Judged* judged) {
    try {
      ForwardContext own;
      own.stop = stop;
      judge(setup, own, *judged);
    } catch (...) {
      judged->error = std::current_exception();
    }
  });
  for (bool more = true; more;) {
    std::size_t count = 0;
    while (count < round.size() && (more = next(round[count].batch)))
      ++count;
    if (count == 1) {
      judge(setup, context, round.front());
    } else if (count > 1) {
      for (std::size_t i = 0; i < count; ++i)
        node.try_put(&round[i]);
      graph.wait_for_all();
    }
    for (std::size_t i = 0; i < count; ++i) {
      if (round[i].error)
        std::rethrow_exception(round[i].error);
      take(round[i]);
    }
  }
  return totals;
}

EvaluationTotals evaluate_metrics(const EvaluationSetup& setup, BatchStream& stream,
                                  std::stop_token stop, std::span<MetricComputer* const> metrics) {
  for (MetricComputer* metric : metrics)
    metric->reset();
  return evaluate(setup, stream, stop, [&](const Predictions& predictions, const Batch& batch) {
    for (MetricComputer* metric : metrics)
      metric->update(predictions, batch);
  });
}

}  // namespace treadle::engine

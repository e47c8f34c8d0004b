#include <treadle/engine/evaluation.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <ATen/ops/ones.h>
#include <ATen/ops/stack.h>
#include <c10/core/GradMode.h>
#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/task_arena.h>

#include <treadle/base/error.h>
#include <treadle/core/model/abilities/keeps_state.h>
#include <treadle/core/model/layer.h>
#include <treadle/core/validation/mean_of_members.h>
#include <treadle/engine/device_traffic.h>
#include <treadle/engine/divided_source.h>
#include <treadle/engine/loss_totals.h>
#include <treadle/tensor/device_streams.h>
#include <treadle/tensor/eval_mode_guard.h>
#include <treadle/tensor/task_random.h>

#include "plan/isolated.h"
#include "session/evaluation_rounds.h"

namespace treadle::engine {
namespace {

namespace flow = oneapi::tbb::flow;

bool has_targets(const Batch& batch) {
  return !batch.targets.empty();
}

/// Into the data's units, as float64 where a transform undoes what it did to the target. `groups`:
/// of the rows.
void invert(const EvaluationSetup& setup, std::size_t target, const at::Tensor& groups,
            Prediction& prediction) {
  if (prediction.kind != TargetKind::kNumbers || !prediction.values.defined() ||
      setup.preparation == nullptr)
    return;
  const std::string& name = setup.objective->targets()[target].name;
  const auto inverted = [&](const at::Tensor& values, const at::Tensor& of) {
    const at::Tensor exact = values.to(at::kDouble);
    const at::Tensor result = setup.preparation->inverted(exact, name, of);
    return result.is_same(exact) ? values : result;
  };
  const at::Tensor transformed = prediction.values.to(at::kDouble);
  prediction.values = inverted(prediction.values, groups);
  for (Prediction::Extra& extra : prediction.extras)
    extra.values = inverted(extra.values, groups);
  // Exact where the transform is linear; else by its slope around the mean.
  const auto apart = [&](at::Tensor& deviation, const at::Tensor& around) {
    if (!deviation.defined())
      return;
    const at::Tensor exact = deviation.to(at::kDouble);
    const at::Tensor above = setup.preparation->inverted(around + exact, name, groups);
    const at::Tensor below = setup.preparation->inverted(around - exact, name, groups);
    deviation = ((above - below) / 2).abs().to(prediction.values.scalar_type());
  };
  apart(prediction.uncertainty.total, transformed);
  apart(prediction.uncertainty.aleatoric, transformed);
  apart(prediction.uncertainty.epistemic, transformed);
  if (!prediction.samples.defined())
    return;
  // The samples of a row are rows of its group.
  const at::Tensor& samples = prediction.samples;
  const at::Tensor of_rows = groups.defined() ? groups.repeat({samples.size(0)}) : groups;
  prediction.samples = inverted(samples.flatten(0, 1), of_rows).view(samples.sizes());
}

/// `outputs` are on the host.
void add_samples(const EvaluationSetup& setup, const Outputs& outputs, const at::Tensor& rows,
                 Predictions& predictions) {
  const at::Tensor numbers = rows.contiguous();
  const auto* const row = numbers.data_ptr<std::int64_t>();
  std::vector<std::uint64_t> seeds(static_cast<std::size_t>(numbers.numel()));
  for (std::size_t target = 0; target < predictions.size(); ++target) {
    if (!predictions[target].values.defined())
      continue;
    std::vector<at::Tensor> samples;
    for (std::int64_t sample = 0; sample < setup.samples->count; ++sample) {
      for (std::size_t i = 0; i < seeds.size(); ++i)
        seeds[i] = setup.samples->seed(row[i], sample, target);
      samples.push_back(setup.objective->draw(target, outputs, seeds));
    }
    predictions[target].samples = at::stack(samples);
  }
}

void to_host(Predictions& predictions, const Waiting& waiting) {
  for (Prediction& prediction : predictions) {
    for_each_tensor(prediction, [&](at::Tensor& values, std::int64_t /*rows*/) {
      values = waiting.fetched(values);
    });
  }
}

/// Replaces targets and weights by those that the device prepared: a loss over whole rows is
/// computed on the host.
void fetch_prepared(const Batch& prepared, const Waiting& waiting, Batch& batch) {
  const auto fetched = [&](const at::Tensor& value) {
    return value.defined() ? waiting.fetched(value) : value;
  };
  std::transform(prepared.targets.begin(), prepared.targets.end(), batch.targets.begin(), fetched);
  std::transform(prepared.position_weights.begin(), prepared.position_weights.end(),
                 batch.position_weights.begin(), fetched);
  batch.weights = fetched(prepared.weights);
}

/// The numbers of a loss that are on its device.
std::int64_t numbers_in(const BatchLoss& loss) {
  auto numbers = static_cast<std::int64_t>(loss.terms.size() + loss.auxiliary.size());
  for (const BatchLoss::Term& term : loss.terms)
    numbers += term.weight.defined() ? 1 : 0;
  return numbers;
}

/// On the device of the outputs, in the units of the training.
Predictions predictions_of(const EvaluationSetup& setup, const Outputs& outputs,
                           const Batch& batch) {
  Predictions predictions = setup.objective->predictions(outputs, batch);
  for (std::size_t target = 0; setup.with_uncertainty && target < predictions.size(); ++target)
    predictions[target].uncertainty = setup.objective->uncertainty(target, outputs);
  return predictions;
}

/// The means of all passes of setup.dropout. `batch` is where the model is.
Predictions mean_of_passes(const EvaluationSetup& setup, const Batch& batch,
                           const std::stop_token& stop) {
  const std::int64_t first = batch.size() > 0 ? batch.rows[0].item<std::int64_t>() : 0;
  const at::Tensor weight = at::ones({}, at::kDouble);
  std::vector<MeanOfMembers> means(setup.objective->targets().size());
  for (std::int64_t pass = 0; pass < setup.dropout->passes; ++pass) {
    const TaskRandom random(setup.dropout->seed(pass, first));
    Outputs outputs(setup.objective->outputs().size());
    ForwardContext context(stop, setup.precision);
    (*setup.model)(batch.inputs, outputs, context);
    Predictions predictions = predictions_of(setup, outputs, batch);
    {
      const Waiting waiting(setup.timeline, device_of(*setup.model));
      to_host(predictions, waiting);
    }
    for (std::size_t target = 0; target < means.size(); ++target) {
      invert(setup, target, batch.groups, predictions[target]);
      means[target].add(predictions[target], weight);
    }
  }
  Predictions all;
  for (const MeanOfMembers& mean : means)
    all.push_back(mean.mean());
  return all;
}

/// Rows and predictions are on the host. On any thread: a model in eval mode is not written to, nor
/// are loss and transforms. `is_prepared`: the device's part is done, and rows may be there.
void evaluate_batch(const EvaluationSetup& setup, ForwardContext& context,
                    EvaluatedBatch& evaluated, bool is_prepared = false) {
  const at::NoGradGuard no_gradients;
  std::optional<Timeline::Span> span;
  span.emplace(setup.timeline, Phase::kMetrics);
  const c10::Device device = device_of(*setup.model);
  Batch moved;
  const bool has_device_part =
      !is_prepared && setup.preparation != nullptr && setup.preparation->has_device_part();
  if (!device.is_cpu() || has_device_part)
    moved = sent(evaluated.batch, device, setup.timeline);
  if (has_device_part)
    setup.preparation->after_transfer(moved, ApplyContext{});
  const Batch& batch = device.is_cpu() && !has_device_part ? evaluated.batch : moved;
  if (setup.dropout != nullptr) {
    evaluated.loss = BatchLoss();
    evaluated.predictions = mean_of_passes(setup, batch, context.stop());
    return;
  }
  Outputs outputs(setup.objective->outputs().size());
  context.set_batch(has_targets(batch) ? &batch : nullptr);
  (*setup.model)(batch.inputs, outputs, context);
  context.set_batch(nullptr);
  evaluated.loss = BatchLoss();
  if (has_targets(batch) && setup.objective->is_additive())
    evaluated.loss.terms = setup.objective->forward(outputs, batch);
  evaluated.predictions = predictions_of(setup, outputs, batch);
  span.reset();
  {
    const Waiting waiting(setup.timeline, device);
    to_host(evaluated.predictions, waiting);
    if (!setup.objective->is_additive() || setup.samples != nullptr) {
      for (const at::Tensor& output : outputs)
        evaluated.outputs.push_back(waiting.fetched(output));
    }
    if (has_device_part && has_targets(batch) && !setup.objective->is_additive())
      fetch_prepared(batch, waiting, evaluated.batch);
  }
  span.emplace(setup.timeline, Phase::kMetrics);
  if (setup.samples != nullptr)
    add_samples(setup, evaluated.outputs, batch.rows, evaluated.predictions);
  for (std::size_t target = 0; target < evaluated.predictions.size(); ++target)
    invert(setup, target, batch.groups, evaluated.predictions[target]);
}

/// The number of batches like this one to evaluate at once. A model needs some times the memory of
/// its inputs.
std::size_t at_once(const Batch& batch) {
  constexpr std::int64_t kInputBytes = std::int64_t{32} << 20;
  std::int64_t bytes = 1;
  for (const at::Tensor& input : batch.inputs)
    bytes += static_cast<std::int64_t>(input.nbytes());
  const std::int64_t workers = oneapi::tbb::this_task_arena::max_concurrency();
  const std::int64_t most = std::min(workers, kMostBatchesAtOnce);
  return static_cast<std::size_t>(std::clamp<std::int64_t>(kInputBytes / bytes, 1, most));
}

/// Whether what a batch gives depends on the batches before. A model that does not say so has no
/// state where the first batch left none. A graph says it: a branch that keeps a state may be taken
/// by a later batch first.
bool carries_state(const Model& model, const ForwardContext& context) {
  const auto* says = dynamic_cast<const KeepsState*>(&model);
  return says != nullptr ? says->keeps_state() : !context.state().empty();
}

/// Outputs and targets of all rows, for an objective that is not additive: its terms are computed
/// once, over everything. Nothing is kept for an additive one. A dimension that varies is padded to
/// the longest row of all batches; padded positions have weight 0.
class WholeRows {
 public:
  explicit WholeRows(const Objective& objective) : objective_(objective) {}

  void add(const Outputs& outputs, const Batch& batch) {
    outputs_.resize(outputs.size());
    for (std::size_t i = 0; i < outputs.size(); ++i)
      outputs_[i].push_back(outputs[i]);
    batches_.push_back(batch);
    batches_.back().inputs.clear();
  }

  void add_to(LossTotals& losses) const {
    if (batches_.empty())
      return;
    Outputs outputs;
    for (const std::vector<at::Tensor>& parts : outputs_)
      outputs.push_back(join_padded(parts));
    BatchLoss loss;
    const Batch whole = Batch::join(batches_);
    loss.terms = objective_.forward(outputs, whole);
    losses.add(loss, whole.size());
  }

 private:
  const Objective& objective_;
  std::vector<std::vector<at::Tensor>> outputs_;
  std::vector<Batch> batches_;
};

}  // namespace

std::int64_t elements_of_row(const std::vector<std::int64_t>& shape) {
  constexpr std::int64_t kUsualLength = 64;  // of what differs from row to row
  std::int64_t elements = 1;
  for (const std::int64_t size : shape)
    elements *= size == kVaries ? kUsualLength : size;
  return elements;
}

std::int64_t evaluation_batch(const ModelSpec& model, std::int64_t least, std::int64_t most) {
  constexpr std::int64_t kInputBytes = std::int64_t{256} << 10;
  constexpr std::int64_t kOutputNumbers = (std::int64_t{64} << 20) / 4;
  std::int64_t row_bytes = 0;
  for (const PortSpec& port : model.inputs)
    row_bytes +=
        elements_of_row(port.shape) * static_cast<std::int64_t>(c10::elementSize(port.dtype));
  std::int64_t row_numbers = 0;
  for (const OutputSpec& output : model.outputs)
    row_numbers += elements_of_row(output.shape);
  const std::int64_t by_inputs =
      std::max(kInputBytes / std::max<std::int64_t>(row_bytes, 1), least);
  const std::int64_t by_outputs =
      std::max<std::int64_t>(kOutputNumbers / std::max<std::int64_t>(row_numbers, 1), 1);
  return std::min({by_inputs, by_outputs, most});
}

std::unique_ptr<BatchStream> rows_to_evaluate(BatchSource& source, EvaluationSetup& setup) {
  auto* const divided = setup.group != nullptr ? dynamic_cast<DividedSource*>(&source) : nullptr;
  const auto* says = dynamic_cast<const KeepsState*>(setup.model);
  if (divided != nullptr && says != nullptr && !says->keeps_state())
    return divided->every(0, setup.group->rank(), setup.group->world_size());
  setup.group = nullptr;
  return source.epoch(0);
}

Evaluation evaluate(const EvaluationSetup& setup, BatchStream& stream, std::stop_token stop,
                    const std::function<void(const Predictions&, const Batch&)>& visit) {
  // Two threads may evaluate one model: what is in eval mode is not written to.
  std::optional<EvalModeGuard> eval_mode;
  if (setup.model->is_training() && setup.dropout == nullptr)
    eval_mode.emplace(*setup.model);
  const at::NoGradGuard no_gradients;
  Evaluation totals;
  LossTotals losses(*setup.objective);
  WholeRows whole(*setup.objective);
  const auto take = [&](EvaluatedBatch& evaluated) {
    if (!evaluated.loss.terms.empty()) {
      const Waiting waiting(setup.timeline, evaluated.loss.terms.front().sum.device(),
                            numbers_in(evaluated.loss));
      losses.add(evaluated.loss, evaluated.batch.size());
    }
    const Timeline::Span span(setup.timeline, Phase::kMetrics);
    if (has_targets(evaluated.batch) && !setup.objective->is_additive() && setup.dropout == nullptr)
      whole.add(evaluated.outputs, evaluated.batch);
    totals.rows += evaluated.batch.size();
    visit(evaluated.predictions, evaluated.batch);
    evaluated = EvaluatedBatch();  // its memory is needed for a batch to come
  };
  // False at the end of the stream. An error is kept: a group sends it to the other processes.
  const auto next = [&](EvaluatedBatch& evaluated) {
    try {
      if (!stream.next(evaluated.batch))
        return false;
      if (stop.stop_requested())
        throw Interrupted("stopped while evaluating");
    } catch (...) {
      evaluated.error = std::current_exception();
    }
    return true;
  };
  const auto evaluate_one = [&](EvaluatedBatch& evaluated, ForwardContext& context) {
    try {
      if (!evaluated.error)
        evaluate_batch(setup, context, evaluated);
    } catch (...) {
      evaluated.error = std::current_exception();
    }
  };
  const c10::Stream device_stream = current_stream(device_of(*setup.model));
  flow::graph graph;
  flow::function_node<EvaluatedBatch*> node(graph, flow::unlimited, [&](EvaluatedBatch* evaluated) {
    const StreamScope on_stream(device_stream);
    ForwardContext own(stop, setup.precision);
    isolated([&] { evaluate_one(*evaluated, own); });
  });

  ForwardContext context(stop, setup.precision);
  std::optional<EvaluationRounds> rounds;
  if (setup.group != nullptr)
    rounds.emplace(*setup.group);
  std::vector<EvaluatedBatch> round(1);
  bool is_first = true;
  for (bool more = true; more;) {
    std::size_t count = 0;
    while (count < round.size() && (more = next(round[count])))
      more = !round[count++].error;
    if (count == 1) {
      evaluate_one(round.front(), context);
    } else if (count > 1) {
      isolated([&] {
        for (std::size_t i = 0; i < count; ++i)
          node.try_put(&round[i]);
      });
      graph.wait_for_all();
    }
    // How many come at once is decided by the first.
    std::size_t size = round.size();
    if (std::exchange(is_first, false) && count == 1 && !round.front().error)
      size = carries_state(*setup.model, context) ? 1 : at_once(round.front().batch);
    const std::span<EvaluatedBatch> own(round.data(), count);
    if (rounds) {
      std::vector<EvaluatedBatch> of_all;
      {
        const Timeline::Span span(setup.timeline, Phase::kExchange);
        of_all = rounds->exchange(own, round.size(), size);
      }
      std::for_each(of_all.begin(), of_all.end(), take);
      more = rounds->has_more();
      size = rounds->at_once();
      round.clear();
    } else {
      for (EvaluatedBatch& evaluated : own) {
        if (evaluated.error)
          std::rethrow_exception(evaluated.error);
        take(evaluated);
      }
    }
    if (more)
      round.resize(size);
  }
  if (totals.rows == 0)
    return totals;
  whole.add_to(losses);
  totals.loss = losses.value();
  totals.terms = losses.terms();
  return totals;
}

Predictions predict(const EvaluationSetup& setup, const Batch& batch) {
  ForwardContext context({}, setup.precision);
  EvaluatedBatch evaluated;
  evaluated.batch = batch;
  evaluated.batch.targets.clear();
  evaluate_batch(setup, context, evaluated);
  return std::move(evaluated.predictions);
}

void test_batch(const EvaluationSetup& setup, const Batch& batch, LossTotals& losses,
                std::span<const TargetMetric> metrics) {
  std::optional<EvalModeGuard> eval_mode;
  if (setup.model->is_training())
    eval_mode.emplace(*setup.model);
  const at::NoGradGuard no_gradients;
  ForwardContext context({}, setup.precision);
  EvaluatedBatch evaluated;
  evaluated.batch = batch;
  evaluate_batch(setup, context, evaluated, true);
  {
    const Waiting waiting(setup.timeline, device_of(*setup.model), numbers_in(evaluated.loss));
    evaluated.batch =
        batch.with_each([&](const at::Tensor& tensor) { return waiting.fetched(tensor); });
    if (!setup.objective->is_additive())
      evaluated.loss.terms = setup.objective->forward(evaluated.outputs, evaluated.batch);
    losses.add(evaluated.loss, batch.size());
  }
  const Timeline::Span span(setup.timeline, Phase::kMetrics);
  for (const TargetMetric& metric : metrics)
    metric.update(evaluated.predictions, evaluated.batch);
}

Evaluation evaluate_metrics(const EvaluationSetup& setup, BatchStream& stream, std::stop_token stop,
                            std::span<const TargetMetric> metrics) {
  for (const TargetMetric& metric : metrics)
    metric.metric->reset();
  return evaluate(setup, stream, stop, [&](const Predictions& predictions, const Batch& batch) {
    for (const TargetMetric& metric : metrics)
      metric.update(predictions, batch);
  });
}

}  // namespace treadle::engine

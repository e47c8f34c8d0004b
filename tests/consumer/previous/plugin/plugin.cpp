// One component of every interface, against the headers of the previous revision. Each overrides
// every virtual function there is, pure or not, and says when it was called; the workflow does the
// same for what the host implements.
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/arange.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <torch/nn/modules/linear.h>

#include <treadle/sdk.h>

#include "calls.h"

namespace {

using namespace treadle;

Calls calls;

constexpr std::int64_t kRows = 64;

/// What every component here is: one that can be asked for the calls.
template <typename Interface>
class Recording : public Interface {
 protected:
  void* do_ask(std::string_view interface_id) override {
    calls.add("Component::do_ask");
    return interface_id == Calls::kInterface ? &calls : nullptr;
  }
};

/// Rows in order, from memory.
class PreviousStream final : public BatchStream {
 public:
  PreviousStream(const RowReader& reader, std::int64_t batch_size)
      : reader_(reader), batch_size_(batch_size) {}

 private:
  bool do_next(Batch& batch) override {
    calls.add("BatchStream::do_next");
    std::vector<std::int64_t> rows;
    for (; next_ < reader_.rows() && static_cast<std::int64_t>(rows.size()) < batch_size_; ++next_)
      rows.push_back(next_);
    if (rows.empty())
      return false;
    batch = Batch();
    reader_.gather(rows, batch);
    return true;
  }
  StateDict do_state() const override {
    calls.add("Stateful::do_state");
    StateDict state;
    state.put("next", nlohmann::json(next_));
    return state;
  }
  void do_load_state(const StateDict& state) override {
    calls.add("Stateful::do_load_state");
    next_ = state.value("next").get<std::int64_t>();
  }

  const RowReader& reader_;
  std::int64_t batch_size_;
  std::int64_t next_ = 0;
};

/// y = 2 x - 1, with x and x² to learn it from.
class PreviousData final : public Recording<DataProvider>, public RowReader {
 public:
  explicit PreviousData(const Config&) {}

 private:
  void* do_ask(std::string_view interface_id) override {
    if (interface_id == RowReader::kInterface)
      return static_cast<RowReader*>(this);
    return Recording::do_ask(interface_id);
  }
  void do_open(const OpenRequest& request) override {
    calls.add("DataProvider::do_open");
    const at::Tensor x = at::arange(kRows, at::kDouble).div(kRows);
    inputs_ = at::stack({x, x.square()}, 1).to(request.dtype);
    targets_ = x.mul(2).sub(1).view({kRows, 1}).to(request.dtype);
    spec_.inputs = {{"features", {2}, {{"x", {}, false}, {"square", {}, false}}}};
    spec_.target = {"y", TargetKind::kNumbers, 1, {}};
  }
  const DataSpec& do_spec() const override {
    calls.add("DataProvider::do_spec");
    calls.add("RowReader::do_spec");
    return spec_;
  }
  std::string do_content_hash() const override {
    calls.add("DataProvider::do_content_hash");
    return std::string(32, '0');
  }
  std::unique_ptr<BatchStream> do_stream(std::int64_t batch_size) const override {
    calls.add("DataProvider::do_stream");
    return std::make_unique<PreviousStream>(*this, batch_size);
  }
  StateDict do_state() const override {
    calls.add("Stateful::do_state");
    return {};
  }
  void do_load_state(const StateDict&) override { calls.add("Stateful::do_load_state"); }

  std::int64_t do_rows() const override {
    calls.add("RowReader::do_rows");
    return kRows;
  }
  void do_gather(std::span<const std::int64_t>, Batch& out) const override {
    calls.add("RowReader::do_gather");
    out.inputs.resize(1);
    gather_rows(inputs_, out.rows, out.inputs[0]);
    gather_rows(targets_, out.rows, out.targets);
  }
  at::Tensor do_targets() const override {
    calls.add("RowReader::do_targets");
    return targets_;
  }
  at::Tensor do_groups() const override {
    calls.add("RowReader::do_groups");
    return {};
  }
  at::Tensor do_timestamps() const override {
    calls.add("RowReader::do_timestamps");
    return {};
  }
  std::string do_describe_row(std::int64_t row) const override {
    calls.add("RowReader::do_describe_row");
    return "previous row " + std::to_string(row);
  }

  DataSpec spec_;
  at::Tensor inputs_;
  at::Tensor targets_;
};

/// Moves inputs to a mean of zero, and halves targets.
class PreviousTransform final : public Recording<Transform> {
 public:
  explicit PreviousTransform(const Config&) {}

 private:
  void do_fit(const RowReader& reader, std::span<const std::int64_t> training_rows) override {
    calls.add("Transform::do_fit");
    std::int64_t rows = 0;
    for_each_chunk(reader, training_rows, [&](const Batch& batch) {
      const at::Tensor sum = batch.inputs[0].sum(0);
      mean_ = rows == 0 ? sum : mean_.add(sum);
      rows += batch.size();
    });
    mean_ = mean_.div(rows);
  }
  DataSpec do_output_spec(const DataSpec& before) const override {
    calls.add("Transform::do_output_spec");
    return before;
  }
  void do_apply(Batch& batch, const ApplyContext&) const override {
    calls.add("Transform::do_apply");
    batch.inputs[0] = batch.inputs[0].sub(mean_);
    if (batch.targets.defined())
      batch.targets = batch.targets.div(2);
  }
  at::Tensor do_invert(const at::Tensor& predictions) const override {
    calls.add("Transform::do_invert");
    return predictions.mul(2);
  }
  StateDict do_state() const override {
    calls.add("Stateful::do_state");
    StateDict state;
    state.put("mean", mean_);
    return state;
  }
  void do_load_state(const StateDict& state) override {
    calls.add("Stateful::do_load_state");
    mean_ = state.tensor("mean");
  }

  at::Tensor mean_;
};

/// Even rows against odd rows, then all.
class PreviousValidation final : public Recording<CrossValidator> {
 public:
  explicit PreviousValidation(const Config&) {}

 private:
  ValidationPlan do_plan(const SplitRequest& request) const override {
    calls.add("CrossValidator::do_plan");
    ValidationPlan plan;
    plan.folds = {{"even", {}, {}}, {"odd", {}, {}}};
    plan.refit = true;
    for (std::int64_t row = 0; row < request.rows; ++row) {
      for (std::size_t fold = 0; fold < 2; ++fold) {
        const bool trains = static_cast<std::size_t>(row % 2) == fold;
        (trains ? plan.folds[fold].training : plan.folds[fold].validation).push_back(row);
      }
    }
    return plan;
  }
};

class PreviousModel final : public Model,
                            public ShowsValues,
                            public NamesParts,
                            public PreparesForInference {
 public:
  explicit PreviousModel(const ModelSpec& spec)
      : linear_(register_module(
            "linear", torch::nn::Linear(spec.inputs[0].shape[0], spec.outputs[0].width))) {
    to(spec.dtype);
  }

  void forward(const Inputs& inputs, Outputs& outputs, ForwardContext& context) override {
    calls.add("Model::forward");
    outputs[0] = linear_->forward(inputs[0]);
    if (context.observed != nullptr)
      context.observed->add("size", outputs[0], Reduction::kNorm);
  }

  std::vector<std::string> observed_names() const override {
    calls.add("ShowsValues::observed_names");
    return {"size"};
  }
  std::vector<std::string> part_names() const override {
    calls.add("NamesParts::part_names");
    return {"offset"};
  }
  std::vector<std::string> parameters_of_part(std::string_view) const override {
    calls.add("NamesParts::parameters_of_part");
    return {"linear.bias"};
  }
  void prepare_for_inference() override {
    calls.add("PreparesForInference::prepare_for_inference");
  }

 private:
  torch::nn::Linear linear_;
};

class PreviousModelProvider final : public Recording<ModelProvider> {
 public:
  explicit PreviousModelProvider(const Config&) {}

 private:
  std::shared_ptr<Model> do_create(const ModelSpec& spec) const override {
    calls.add("ModelProvider::do_create");
    return std::make_shared<PreviousModel>(spec);
  }
};

/// The same numbers, by a kernel of its own.
class PreviousOp final : public PlanOp, public MapsChannels, public TakesChannelMap {
 public:
  std::string_view name() const override {
    calls.add("PlanOp::name");
    return "previous";
  }
  TensorSpec result(std::span<const TensorSpec> inputs) const override {
    calls.add("PlanOp::result");
    return inputs[0];
  }
  std::vector<TensorSpec> keeps(std::span<const TensorSpec>) const override {
    calls.add("PlanOp::keeps");
    return {};
  }
  bool allocates() const override {
    calls.add("PlanOp::allocates");
    return false;
  }
  void forward(const Inputs& inputs, at::Tensor& output, std::span<at::Tensor>) const override {
    calls.add("PlanOp::forward");
    output.copy_(inputs[0]);
  }
  Reads backward_reads() const override {
    calls.add("PlanOp::backward_reads");
    return {.inputs = false, .output = false};
  }
  void backward(const PlanGradients& gradients) const override {
    calls.add("PlanOp::backward");
    if (gradients.wanted[0])
      gradients.of_inputs[0].copy_(gradients.of_output);
  }
  std::vector<at::Tensor> parameters() const override {
    calls.add("PlanOp::parameters");
    return {};
  }
  bool draws() const override {
    calls.add("PlanOp::draws");
    return false;
  }
  std::optional<ChannelMap> channel_map() const override {
    calls.add("MapsChannels::channel_map");
    return std::nullopt;
  }
  std::shared_ptr<const PlanOp> followed_by(const ChannelMap&, const TensorSpec&) const override {
    calls.add("TakesChannelMap::followed_by");
    return nullptr;
  }
};

class PreviousLayer final : public Layer,
                            public Planned,
                            public TakesAbsent,
                            public NamesReferences,
                            public BeginsForward,
                            public Remembers,
                            public Traced,
                            public TakesCategories {
 public:
  explicit PreviousLayer(const LayerSpec& spec) : result_(spec.inputs[0]) {}

  at::Tensor forward(const Inputs& inputs, LayerContext& context) override {
    calls.add("Layer::forward");
    context.memory.put("calls", at::zeros({1}, at::kDouble));
    return inputs[0].mul(2);
  }
  std::vector<std::string> reference_names() const override {
    calls.add("NamesReferences::reference_names");
    return {};
  }
  void begin_forward(std::int64_t, at::Device, LayerContext&) override {
    calls.add("BeginsForward::begin_forward");
  }
  std::optional<PlanValue> plan(PlanBuilder& builder,
                                std::span<const PlanValue> inputs) const override {
    calls.add("Planned::plan");
    calls.add("PlanBuilder::spec");
    const std::vector<std::int64_t> sizes = builder.spec(inputs[0]).sizes;
    calls.add("PlanBuilder::reshape");
    const PlanValue flat = builder.reshape(inputs[0], {-1});
    calls.add("PlanBuilder::step");
    const PlanValue twice = builder.step(ElementStep::kAdd, flat, flat);
    calls.add("PlanBuilder::apply");
    return builder.apply(std::make_shared<PreviousOp>(), builder.reshape(twice, sizes));
  }
  bool remembers() const override {
    calls.add("Remembers::remembers");
    return false;
  }
  at::Tensor trace(const at::Tensor& state) const override {
    calls.add("Traced::trace");
    return state;
  }

 private:
  TensorSpec do_result(std::span<const TensorSpec>) override {
    calls.add("Layer::do_result");
    return result_;
  }
  TensorSpec result_;
};

class PreviousLayerFactory final : public Recording<LayerFactory> {
 public:
  explicit PreviousLayerFactory(const Config&) {}

 private:
  std::shared_ptr<Layer> do_create(const LayerSpec& spec) const override {
    calls.add("LayerFactory::do_create");
    return std::make_shared<PreviousLayer>(spec);
  }
};

class PreviousGraph final : public Recording<GraphBuilder> {
 public:
  explicit PreviousGraph(const Config&) {}

 private:
  nlohmann::json do_build(const LayerSpec&) const override {
    calls.add("GraphBuilder::do_build");
    return nlohmann::json::array({{{"use", "previous"}, {"name", "inner"}}});
  }
};

class PreviousLoss final : public Recording<Loss> {
 public:
  explicit PreviousLoss(const Config&) {}

 private:
  std::vector<OutputSpec> do_outputs_for(const TargetSpec& target) const override {
    calls.add("Loss::do_outputs_for");
    return {{"value", target.width}};
  }
  LossTerms do_forward(const std::vector<at::Tensor>& outputs, const Batch& batch) const override {
    calls.add("Loss::do_forward");
    return {outputs[0].sub(batch.targets).square().sum(), {}};
  }
  Predictions do_predictions(const std::vector<at::Tensor>& outputs) const override {
    calls.add("Loss::do_predictions");
    return {TargetKind::kNumbers, outputs[0]};
  }
};

class PreviousGradients final : public Recording<GradientStrategy> {
 public:
  explicit PreviousGradients(const Config&) {}

 private:
  LossTerms do_add_gradients(const GradientTask& task, const Batch& batch,
                             ForwardContext& context) const override {
    calls.add("GradientStrategy::do_add_gradients");
    const OneStepGradients one_step;
    const std::int64_t half = batch.size() / 2;
    const LossTerms first = back_propagate(task, batch.slice(0, half), context);
    const LossTerms second = back_propagate(task, batch.slice(half, batch.size() - half), context);
    return {first.sum.add(second.sum), {}};
  }
};

class PreviousOptimizer final : public Recording<Optimizer> {
 public:
  explicit PreviousOptimizer(const Config&) {}

 private:
  double do_learning_rate() const override {
    calls.add("Optimizer::do_learning_rate");
    return 0.1;
  }
  std::vector<SlotSpec> do_slots() const override {
    calls.add("Optimizer::do_slots");
    return {{"momentum", SlotSpec::Kind::kPerElement, 0},
            {"updates", SlotSpec::Kind::kPerSegment, 0},
            {"all", SlotSpec::Kind::kScalar, 0}};
  }
  void do_update(Block& block, const StepInfo& info) const override {
    calls.add("Optimizer::do_update");
    auto* parameters = block.parameters<double>();
    auto* momentum = block.elements<double>(0);
    const auto* gradients = block.gradients<double>();
    const std::span<const Segment> segments = block.segments();
    for (std::size_t s = 0; s < segments.size(); ++s) {
      if (!segments[s].active())
        continue;
      block.numbers(1)[s] += 1;
      for (std::int64_t i = segments[s].offset; i < segments[s].offset + segments[s].size; ++i) {
        momentum[i] = 0.5 * momentum[i] + info.gradient_scale * gradients[i];
        parameters[i] -= info.learning_rate * momentum[i];
      }
    }
    *block.numbers(2) += 1;
  }
};

class PreviousSchedule final : public Recording<LearningRateSchedule> {
 public:
  explicit PreviousSchedule(const Config&) {}

 private:
  double do_rate_at(std::int64_t step, const ScheduleSpan& span) const override {
    calls.add("LearningRateSchedule::do_rate_at");
    return span.base_rate *
           (1 - 0.5 * static_cast<double>(step) / static_cast<double>(span.total_steps));
  }
};

/// The mean absolute error.
class PreviousMetric final : public Recording<MetricComputer> {
 public:
  explicit PreviousMetric(const Config&) {}

 private:
  void do_start(const TargetSpec&) override { calls.add("MetricComputer::do_start"); }
  void do_reset() override {
    calls.add("MetricComputer::do_reset");
    sum_ = rows_ = 0;
  }
  void do_update(const Predictions& predictions, const Batch& batch) override {
    calls.add("MetricComputer::do_update");
    sum_ += predictions.values.sub(batch.original_targets).abs().sum().item<double>();
    rows_ += static_cast<double>(batch.size());
  }
  void do_merge(const MetricComputer& other) override {
    calls.add("MetricComputer::do_merge");
    sum_ += static_cast<const PreviousMetric&>(other).sum_;
    rows_ += static_cast<const PreviousMetric&>(other).rows_;
  }
  MetricResult do_compute() const override {
    calls.add("MetricComputer::do_compute");
    return {{{"previous_error", sum_ / rows_, Direction::kLowerIsBetter}},
            {{"previous_table", {"sum"}, {"rows"}, at::zeros({1, 1}, at::kDouble)}}};
  }
  StateDict do_state() const override {
    calls.add("Stateful::do_state");
    StateDict state;
    state.put_number("sum", sum_);
    state.put_number("rows", rows_);
    return state;
  }
  void do_load_state(const StateDict& state) override {
    calls.add("Stateful::do_load_state");
    sum_ = state.number("sum");
    rows_ = state.number("rows");
  }

  double sum_ = 0;
  double rows_ = 0;
};

/// A loop of three epochs that saves after each step and uses everything its context and its
/// batches offer.
class PreviousTraining final : public Recording<TrainingWorkflow> {
 public:
  explicit PreviousTraining(const Config&) {}

 private:
  static constexpr std::int64_t kEpochs = 3;

  BatchPlan do_batch_plan() const override {
    calls.add("TrainingWorkflow::do_batch_plan");
    return {8, 16, true, false};
  }
  std::int64_t do_planned_epochs() const override {
    calls.add("TrainingWorkflow::do_planned_epochs");
    return kEpochs;
  }

  TrainingResult do_train(TrainingTask& task, RunContext& context) override {
    calls.add("TrainingWorkflow::do_train");
    ParameterArena arena(*task.model);
    OptimizerSlots slots(task.optimizer->slots(), arena);
    Block block(arena, slots);
    calls.add("BatchSource::do_batches_per_epoch");
    const std::int64_t steps_per_epoch = task.training->batches_per_epoch();
    calls.add("BatchSource::do_rows");
    const auto rows = static_cast<double>(task.training->rows());
    const ScheduleSpan span{task.optimizer->learning_rate(), kEpochs * steps_per_epoch,
                            steps_per_epoch};
    calls.add("RunContext::do_trial");
    const bool is_first = context.trial().index == 0;
    calls.add("RunContext::do_random");
    const RandomStreams random = context.random();
    calls.add("RunContext::do_resume_state");
    std::int64_t step = 0;
    if (const std::optional<StateDict> saved = context.resume_state()) {
      step = saved->value("step").get<std::int64_t>();
      load_module_state(*task.model, saved->part("model"));
      slots.load_state(saved->part("slots"));
    }
    if (is_first && step == 0) {
      calls.add("RunContext::do_note");
      context.note("a workflow of the previous revision trains");
    }
    task.model->train();
    TrainingResult result;
    for (std::int64_t epoch = step / steps_per_epoch; epoch < kEpochs; ++epoch) {
      calls.add("BatchSource::do_epoch");
      const std::unique_ptr<BatchStream> stream =
          task.training->epoch(epoch, step % steps_per_epoch);
      double sum = 0;
      Batch batch;
      while (stream->next(batch)) {
        const TaskRandom dropout(random.seed("previous", {static_cast<std::uint64_t>(step)}));
        arena.zero_gradients();
        Outputs outputs(task.outputs);
        ForwardContext forward;
        task.model->forward(batch.inputs, outputs, forward);
        const LossTerms terms = task.loss->forward(outputs, batch);
        terms.sum.backward();
        arena.collect();
        sum += terms.sum.item<double>();
        task.optimizer->update(block, {step + 1, task.schedule->rate_at(step, span),
                                       1 / static_cast<double>(batch.size())});
        ++step;
        calls.add("RunContext::do_step_completed");
        context.step_completed({epoch + 1, kEpochs, step, span.total_steps});
        if (calls.after_step)
          calls.after_step();
        StateDict state;
        state.put("step", nlohmann::json(step));
        state.put("model", module_state(*task.model));
        state.put("slots", slots.state());
        calls.add("RunContext::do_save_checkpoint");
        context.save_checkpoint(
            state,
            {step / steps_per_epoch, step, step % steps_per_epoch == 0, step == span.total_steps},
            2);
        calls.add("RunContext::do_stop_token");
        if (context.stop_token().stop_requested()) {
          calls.add("RunContext::do_last_checkpoint");
          throw Interrupted("stopped; saved in " + context.last_checkpoint());
        }
      }
      EpochSummary summary;
      summary.epoch = epoch + 1;
      summary.epochs = kEpochs;
      summary.step = step;
      summary.training_loss = sum / rows;
      calls.add("RunContext::do_epoch_completed");
      context.epoch_completed(summary);
      result.final_loss = result.best_loss = summary.training_loss;
    }
    result.best_epoch = result.total_epochs = kEpochs;
    return result;
  }

  ValidationResult do_validate(TrainingTask& task, RunContext&) override {
    calls.add("TrainingWorkflow::do_validate");
    task.model->eval();
    ValidationResult result;
    double sum = 0;
    for (MetricComputer* metric : task.metrics)
      metric->reset();
    const std::unique_ptr<BatchStream> stream = task.validation->epoch(0);
    Batch batch;
    while (stream->next(batch)) {
      Outputs outputs(task.outputs);
      ForwardContext forward;
      task.model->forward(batch.inputs, outputs, forward);
      sum += task.loss->forward(outputs, batch).sum.item<double>();
      Predictions predictions = task.loss->predictions(outputs);
      for (auto transform = task.transforms.rbegin(); transform != task.transforms.rend();
           ++transform)
        predictions.values = (*transform)->invert(predictions.values).detach();
      for (MetricComputer* metric : task.metrics)
        metric->update(predictions, batch);
      result.sample_count += batch.size();
    }
    for (const MetricComputer* metric : task.metrics) {
      for (const MetricValue& value : metric->compute().values)
        result.metrics.values.push_back(value);
    }
    result.loss = sum / static_cast<double>(result.sample_count);
    return result;
  }
};

class PreviousObserver final : public Recording<RunObserver> {
 public:
  explicit PreviousObserver(const Config&, const ComponentContext&) {}

 private:
  void do_run_started(const std::string&, const std::string&) override {
    calls.add("RunObserver::do_run_started");
  }
  void do_trial_started(const TrialId&) override { calls.add("RunObserver::do_trial_started"); }
  void do_step_completed(const TrialId&, const StepProgress&) override {
    calls.add("RunObserver::do_step_completed");
  }
  void do_epoch_completed(const TrialId&, const EpochSummary&) override {
    calls.add("RunObserver::do_epoch_completed");
  }
  void do_checkpoint_saved(const TrialId&, const std::string&) override {
    calls.add("RunObserver::do_checkpoint_saved");
  }
  void do_trial_completed(const TrialId&, const TrialSummary&) override {
    calls.add("RunObserver::do_trial_completed");
  }
  void do_noted(const std::string&) override { calls.add("RunObserver::do_noted"); }
  void do_run_completed(const std::string&) override { calls.add("RunObserver::do_run_completed"); }
};

}  // namespace

TREADLE_PLUGIN(registrar) {
  calls.add("Registrar::do_add");
  registrar.add<PreviousData, DataProvider>("previous");
  registrar.add<PreviousTransform>("previous");
  registrar.add<PreviousValidation>("previous");
  registrar.add<PreviousModelProvider>("previous");
  registrar.add<PreviousLayerFactory>("previous");
  registrar.add<PreviousGraph>("previous");
  registrar.add<PreviousLoss>("previous");
  registrar.add<PreviousGradients>("previous");
  registrar.add<PreviousOptimizer>("previous");
  registrar.add<PreviousSchedule>("previous");
  registrar.add<PreviousMetric>("previous");
  registrar.add<PreviousTraining>("previous");
  registrar.add<PreviousObserver>("previous");
}

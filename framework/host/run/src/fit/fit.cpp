#include "fit/fit.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include <treadle/base/error.h>
#include <treadle/core/components/module_state.h>
#include <treadle/core/model/abilities/chooses_execution.h>
#include <treadle/core/model/weights.h>
#include <treadle/core/model/weights_sources.h>
#include <treadle/core/validation/set_aside.h>
#include <treadle/engine/device_traffic.h>
#include <treadle/engine/evaluation.h>
#include <treadle/engine/transformed_rows.h>
#include <treadle/tensor/device_streams.h>
#include <treadle/tensor/task_random.h>

#include "components/document_metrics.h"
#include "data/rounded_columns.h"
#include "data/target_units.h"
#include "evaluation/breakdowns.h"
#include "fit/deadline.h"
#include "model/saved_model.h"

// One training, from its rows to its evaluations: prepared by its constructor, then train(),
// validate() and test().
// All run on the fit's own thread, inside the run's ThreadBudget. `components_` and the data are
// shared with other fits that run at the same time, and are only read.
//
// A fit that continues from a checkpoint is prepared like a fresh one, with two differences.
// Transforms and fitted losses are restored instead of fitted, and no weights are loaded, because
// engine::train() loads all state of the training. Everything else must come out the same, or the
// resumed fit would not have the bits of an uninterrupted one. So nothing here may depend on time,
// on the machine or on other fits; but for a deadline, which only a time budget asks for.
//
// Every use of random numbers has a stream of its own, derived from the run's seed and the fit's
// place in the tree: initial weights, batches, validation, test. Drawing more in one of them
// changes nothing in the others.
//
// setup_ and the pipelines hold pointers to other members, so a Fit is neither copied nor moved.

namespace treadle::internal {

std::string execution_choice(const Model& model) {
  const auto* chooses = dynamic_cast<const ChoosesExecution*>(&model);
  return chooses == nullptr ? std::string() : chooses->execution_choice();
}

Fit::Fit(const DocumentComponents& components, FitOrder order)
    : components_(components),
      id_(std::move(order.id)),
      rows_(std::move(order.rows)),
      timeline_(order.timeline),
      stream_(another_stream(components.device().device())),
      random_(id_.random(RandomStreams(components.workflow().seed))),
      plan_(components.training_plan()),
      losses_(components.loss_terms()) {
  const Timeline::Span span(timeline_, Phase::kLoading);
  const StreamScope on_stream(stream_);
  prepare_transforms(order.preprocessing);
  prepare_losses(order.preprocessing);
  prepare_model(order);
  prepare_loop(order);
  prepare_metrics(order.preprocessing);
  epoch_rows_ = plan_.parts.empty() ? rows_.training : rows_beside_parts();
  open_training_rows();
  open_evaluated_rows();
  set_up();
}

Fit::~Fit() = default;

std::vector<const Transform*> Fit::transforms() const {
  std::vector<const Transform*> result;
  for (const auto& transform : transforms_)
    result.push_back(transform.get());
  return result;
}

/// Each transform is fitted on the training rows as the transforms before it leave them. Validation
/// and test rows have no part in it: a statistic of theirs would leak into the training. Nor have
/// those to come, where the data is taken once.
void Fit::prepare_transforms(const StateDict* saved) {
  const RowReader& rows = components_.rows();
  transforms_ = components_.make_transforms();
  if (saved != nullptr) {
    load_transforms(transforms_, *saved);
  } else {
    std::vector<const Transform*> fitted;
    for (const auto& transform : transforms_) {
      const engine::TransformedRows so_far(rows, fitted, components_.precision().data());
      transform->fit(so_far, rows_to_fit());
      fitted.push_back(transform.get());
    }
  }
  const EvaluatedRows data = components_.dataset().evaluated();
  known_groups_ = KnownGroups(transforms(), data.names);
  if (components_.outputs_need_groups()) {
    for (const RowList* const used : {&rows_.training, &rows_.outputs})
      known_groups_.add_for_outputs(data, *used);
  }
  for (const RowList* const used :
       {&rows_.training, &rows_.validation, &rows_.test, &rows_.outputs})
    known_groups_.expect_known(data, *used);
  preparation_ = engine::BatchPreparation(rows.spec(), transforms(), components_.preparation());
}

/// After the transforms, on whose data losses are fitted, and before the model, whose outputs they
/// determine.
void Fit::prepare_losses(const StateDict* saved) {
  if (saved != nullptr) {
    losses_.load_from(*saved);
  } else {
    const engine::TransformedRows transformed(components_.rows(), transforms(),
                                              components_.precision().data());
    losses_.fit(transformed, rows_to_fit());
    if (components_.precision().data() == at::kFloat)
      notes_ = notes_on_rounding(transformed, rows_to_fit());
  }
  model_spec_ = components_.model_spec(preparation_.spec());
  objective_.emplace(losses_.objective(preparation_.spec()));
}

void Fit::prepare_model(const FitOrder& order) {
  {
    const TaskRandom random(random_.seed("init"));
    model_ = components_.make_model(model_spec_);
    // A replica draws weights of its own, which are never used: the training step makes its
    // parameters views of the model's (docs/decisions/0008).
    if (order.communicator != nullptr)
      group_.emplace(*order.communicator, components_.shards());
    const std::size_t shards = group_ ? group_->own().size() : components_.shards();
    while (replicas_.size() + 1 < shards)
      replicas_.push_back(components_.make_model(model_spec_));
  }
  if (const std::string choice = execution_choice(*model_); !choice.empty())
    notes_.push_back("execution: " + choice);
  if (order.preprocessing == nullptr) {  // else weights are in the checkpoint
    if (model_spec_.dtype != components_.precision().data())
      draw_weights_as_float32();
    load_given_weights(order.start_weights);
  }
  move_to_device();
}

void Fit::prepare_loop(const FitOrder& order) {
  const Runtime& runtime = components_.runtime();
  const ResolvedWorkflow& workflow = components_.workflow();
  optimizer_ = make_optimizer(runtime, workflow);
  groups_ = make_optimizer_groups(runtime, workflow, *model_);
  schedule_ = make_schedule(runtime, workflow);
  loop_ = make_training(runtime, workflow);
  sampler_ = make_sampler(runtime, workflow);
  gradients_ = make_gradients(runtime, workflow);
  callbacks_ = make_callbacks(runtime, workflow);
  if (order.deadline)
    callbacks_.push_back(std::make_unique<Deadline>(*order.deadline));
}

void Fit::prepare_metrics(const StateDict* saved) {
  metrics_ = make_metrics(components_);
  report_metrics_ = make_report_metrics(components_);
  if (saved != nullptr) {
    fitted_metrics_.load_from(*saved);
  } else {
    fitted_metrics_.fit(metrics_, components_.dataset().evaluated(), rows_to_fit());
  }
  ready(metrics_, report_metrics_, rows_.validation);
}

/// Checked here, where the message can name the document's keys. A stream is not checked: the
/// number of its rows may be unknown before its end.
void Fit::expect_whole_batches_of(const RowList& rows) {
  const auto rows_to_train = static_cast<std::int64_t>(rows.size());
  const std::int64_t samples = sampler_ ? sampler_->samples(rows_to_train) : rows_to_train;
  if (plan_.drop_last && samples < plan_.batch_size) {
    throw DataError("training.drop_last leaves nothing: the fit has " +
                    std::to_string(rows_to_train) + " training rows" +
                    (samples == rows_to_train ? ""
                                              : ", of which the sampler draws " +
                                                    std::to_string(samples) + " in a pass,") +
                    " and a batch has " + std::to_string(plan_.batch_size));
  }
  if (!plan_.drop_last && !plan_.drop_single && !objective_->is_additive() && samples > 1 &&
      samples % plan_.batch_size == 1) {
    notes_.push_back(
        "loss: the last batch of each epoch has one row, of which a loss over whole batches has no "
        "gradient; \"drop_last\": \"single\" in \"training\" leaves it out");
  }
}

void Fit::open_training_rows() {
  const std::optional<engine::StreamInput> stream = components_.stream();
  if (!stream)
    expect_whole_batches_of(epoch_rows_);
  const engine::PipelineOptions to_train{.batch_size = plan_.batch_size,
                                         .shuffle = plan_.shuffle,
                                         .sampler = sampler_.get(),
                                         .drop_last = plan_.drop_last,
                                         .fewest_rows = fewest_rows(),
                                         .batches_per_epoch = plan_.steps_per_epoch,
                                         .one_pass = is_one_pass(),
                                         // Of one pass, rows are evaluated as they are.
                                         .training = !is_one_pass(),
                                         .timeline = timeline_,
                                         .shards = components_.shards(),
                                         .device = components_.device().device(),
                                         .staging = components_.device().staging()};
  const auto open = [&](const engine::PipelineOptions& options, const RandomStreams& random) {
    return stream ? std::make_unique<engine::BatchPipeline>(*stream, preparation_, options, random)
                  : std::make_unique<engine::BatchPipeline>(components_.rows(), epoch_rows_,
                                                            preparation_, options, random);
  };
  training_ = open(to_train, random_);
  engine::PipelineOptions in_order = to_evaluate();
  if (stream) {  // which may have no end: as much of it as is an epoch
    in_order.batch_size = plan_.batch_size;
    in_order.batches_per_epoch = plan_.steps_per_epoch ? plan_.steps_per_epoch : plan_.max_steps;
    in_order.one_pass = in_order.batches_per_epoch.has_value();
  }
  training_in_order_ = open(in_order, random_.part("training", 0));
  setup_.rows.push_back({"training", nullptr, training_in_order_.get()});
  open_named_rows();
}

void Fit::open_evaluated_rows() {
  if (rows_.validation.empty() && !is_one_pass())
    return;
  validation_ = std::make_unique<engine::BatchPipeline>(
      components_.rows(), is_one_pass() ? rows_to_fit() : rows_.validation, preparation_,
      to_evaluate(), random_.part("validation", 0));
  (is_one_pass() ? setup_.example : setup_.validation) = validation_.get();
}

void Fit::set_up() {
  setup_.model = model_.get();
  setup_.objective = &*objective_;
  setup_.optimizer = optimizer_.get();
  setup_.schedule = schedule_.get();
  setup_.training = training_.get();
  setup_.shards = components_.shards() > 1 ? training_.get() : nullptr;
  setup_.group_names = components_.dataset().evaluated().names;
  setup_.metrics = views(metrics_);
  setup_.preparation = &preparation_;
  for (const auto& callback : callbacks_)
    setup_.callbacks.push_back(callback.get());
  // A refit has no validation rows to stop or choose by, so the planner fixes its length.
  setup_.is_refit = rows_.fixed_epochs > 0;
  setup_.epochs = setup_.is_refit ? rows_.fixed_epochs : plan_.epochs;
  setup_.max_steps = plan_.max_steps;
  if (is_one_pass())
    end_with_the_data();
  setup_.evaluate_every = plan_.evaluate_every;
  setup_.clipping = plan_.clipping;
  setup_.gradients = gradients_.get();
  for (const auto& replica : replicas_)
    setup_.replicas.push_back(replica.get());
  for (const OptimizerGroup& group : groups_)
    setup_.groups.push_back({group.optimizer.get(), group.parameters, group.schedule.get()});
  setup_.group = group_ ? &*group_ : nullptr;
  setup_.checkpoint_every = plan_.checkpoint_every;
  setup_.keep_checkpoints = plan_.keep_checkpoints;
  setup_.timeline = timeline_;
  setup_.backend = components_.device().staging();
  setup_.precision = components_.precision();
  setup_.capture = components_.capture();
  if (components_.device().info.tensors_only)
    setup_.path = ParameterView::Path::kTensors;
}

bool Fit::is_one_pass() const {
  return plan_.rows_per_epoch.has_value();
}

/// The rows that transforms and losses are fitted on: the training rows; of one pass, those of the
/// first epoch.
RowList Fit::rows_to_fit() const {
  const std::size_t all = rows_.training.size();
  const auto first =
      static_cast<std::size_t>(plan_.rows_per_epoch.value_or(static_cast<std::int64_t>(all)));
  return rows_.training.part(0, std::min(all, first));
}

/// The training rows of the epochs; the others are in parts_.
RowList Fit::rows_beside_parts() {
  const std::vector<LoopNeeds::Part>& parts = plan_.parts;
  if (components_.stream()) {
    throw DataError(
        "the training rows are only read in their order, and the loop sets some aside; choose data "
        "that is read at random");
  }
  const auto rows = static_cast<std::int64_t>(rows_.training.size());
  const auto needed = static_cast<std::int64_t>(parts.size()) + 1;
  if (rows < needed) {
    throw DataError("the loop sets training rows aside and needs " + std::to_string(needed) +
                    " of them, and there is " + std::to_string(rows));
  }
  const std::vector<std::int64_t> shuffled = random_permutation(rows, random_.bits("set_aside"));
  std::int64_t taken = 0;
  for (const LoopNeeds::Part& part : parts) {
    const std::int64_t left =
        rows - taken - (needed - static_cast<std::int64_t>(parts_.size()) - 1);
    const std::int64_t count =
        std::clamp<std::int64_t>(std::llround(part.fraction * static_cast<double>(rows)), 1, left);
    std::vector<std::int64_t> places(shuffled.begin() + taken, shuffled.begin() + taken + count);
    std::sort(places.begin(), places.end());
    parts_.push_back({part.name, rows_.training.at(RowList(std::move(places)))});
    taken += count;
  }
  std::vector<std::int64_t> aside(shuffled.begin(), shuffled.begin() + taken);
  std::sort(aside.begin(), aside.end());
  return rows_.training.at(all_rows_but(rows, RowList(std::move(aside))));
}

/// The rows of a loop beside the batches of its epochs. Parts are prepared as other training rows
/// are.
void Fit::open_named_rows() {
  const RowReader& rows = components_.rows();
  for (PartOfRows& part : parts_) {
    const RandomStreams random = random_.part(part.name, 0);
    part.training = std::make_unique<engine::BatchPipeline>(
        rows, part.rows, preparation_,
        engine::PipelineOptions{.batch_size = plan_.batch_size,
                                .shuffle = true,
                                .fewest_rows = fewest_rows(),
                                .training = true,
                                .timeline = timeline_,
                                .device = components_.device().device(),
                                .staging = components_.device().staging()},
        random);
    part.evaluation = std::make_unique<engine::BatchPipeline>(
        rows, part.rows, preparation_, to_evaluate(), random.part("evaluation", 0));
    setup_.rows.push_back({part.name, part.training.get(), part.evaluation.get()});
  }
}

engine::PipelineOptions Fit::to_evaluate() const {
  return {.batch_size =
              engine::evaluation_batch(model_spec_, plan_.batch_size, plan_.evaluation_batch_size),
          .timeline = timeline_,
          .host_part_only = true,
          .staging = components_.device().staging()};
}

/// Of a last batch that is trained on. With fewer than two for each shard, one of them would have a
/// row alone.
std::int64_t Fit::fewest_rows() const {
  return plan_.drop_single ? 2 * static_cast<std::int64_t>(components_.shards()) : 1;
}

/// The length of a training of one pass, as far as the number of rows is known: in steps, and in
/// windows.
void Fit::end_with_the_data() {
  const std::int64_t steps = training_->batches_per_pass().value_or(DataProvider::kEndless);
  if (steps != DataProvider::kEndless)
    setup_.max_steps = std::min(steps, plan_.max_steps.value_or(steps));
  if (setup_.max_steps)
    setup_.epochs = (*setup_.max_steps + *plan_.steps_per_epoch - 1) / *plan_.steps_per_epoch;
}

/// Operators draw other numbers in another dtype: a training begins with those of float32, rounded.
void Fit::draw_weights_as_float32() {
  ModelSpec wide = model_spec_;
  wide.dtype = components_.precision().data();
  const TaskRandom random(random_.seed("init"));
  load_weights(*model_, module_state(*components_.make_model(wide)).tensors());
}

/// Weights are drawn and read on the CPU: they are the same for every device.
void Fit::move_to_device() {
  const c10::Device device = components_.device().device();
  if (device.is_cpu())
    return;
  std::vector<Model*> models{model_.get()};
  for (const auto& replica : replicas_)
    models.push_back(replica.get());
  for (Model* model : models) {
    engine::count_sent(module_state(*model), device, timeline_);
    model->to(device);
  }
}

void Fit::load_given_weights(const std::optional<StateDict>& start_weights) {
  // A warm start takes precedence over the document's file: every fit of the run has the file, and
  // the planner chose these weights for this fit.
  if (start_weights) {
    load_module_state(*model_, *start_weights);
    return;
  }
  std::vector<WeightsSource> sources;
  std::map<std::filesystem::path, TensorFile> files;  // several sources may be of one
  for (const GivenWeights& given : given_weights(components_.workflow())) {
    const auto [file, is_new] = files.try_emplace(given.path);
    if (is_new)
      file->second = read_weights(given.path);
    sources.push_back({given.path.string(), file->second.tensors, given.from, given.to,
                       given.is_strict, file->second.left_out});
  }
  const std::vector<std::string> left = load_weights(*model_, sources);
  for (std::size_t i = 0; i < sources.size(); ++i) {
    notes_.push_back("weights: " + (sources[i].to.empty() ? "" : "of " + sources[i].to + ", ") +
                     "from " + sources[i].file +
                     (left[i].empty() ? "" : ", as far as they fit; " + left[i]));
  }
}

engine::TrainingResult Fit::train(engine::RunContext& context) {
  const StreamScope on_stream(stream_);
  return on_working_device(components_.device(), [&] {
    const engine::TrainingResult result = engine::train(*loop_, setup_, context);
    finish_on_device();
    return result;
  });
}

/// Others read the weights next, on other streams.
void Fit::finish_on_device() const {
  const RunDevice& device = components_.device();
  if (timeline_ == nullptr || device.device().is_cpu())
    return device.backend->synchronize(device.device());
  {
    const Timeline::Span waiting(timeline_, Phase::kWaiting);
    timeline_->device_use().count_waits(1);
    device.backend->synchronize(device.device());
  }
  const DeviceMemory memory = device.backend->memory(device.device());
  timeline_->device_use().note_memory(memory.peak, memory.reserved);
}

engine::ValidationResult Fit::validate(std::stop_token stop) {
  const StreamScope on_stream(stream_);
  // The report's metrics are computed only here, not after every epoch: their tables are large, and
  // only those of the final weights are shown.
  engine::SessionSetup setup = setup_;
  const std::vector<TargetMetric> extra = views(report_metrics_);
  setup.metrics.insert(setup.metrics.end(), extra.begin(), extra.end());
  return engine::validate(setup, std::move(stop));
}

engine::ValidationResult Fit::test(std::stop_token stop) {
  const StreamScope on_stream(stream_);
  engine::BatchPipeline rows(components_.rows(), rows_.test, preparation_, to_evaluate(),
                             random_.part("test", 0));
  // Fresh metrics: others hold what validate() accumulated.
  const std::vector<Metric> metrics = make_metrics(components_);
  tested_metrics_ = make_report_metrics(components_);
  ready(metrics, tested_metrics_, rows_.test);
  engine::SessionSetup setup = setup_;
  setup.validation = &rows;
  setup.metrics = views(metrics);
  const std::vector<TargetMetric> extra = views(tested_metrics_);
  setup.metrics.insert(setup.metrics.end(), extra.begin(), extra.end());
  return engine::validate(setup, std::move(stop));
}

std::vector<Metric> Fit::predict_for_outputs(std::stop_token stop) {
  const StreamScope on_stream(stream_);
  engine::BatchPipeline rows(components_.rows(), rows_.outputs, preparation_, to_evaluate(),
                             random_.part("outputs", 0));
  std::vector<Metric> collecting = make_collecting_metrics(components_);
  engine::SessionSetup setup = setup_;
  setup.validation = &rows;
  setup.metrics = views(collecting);
  engine::validate(setup, std::move(stop));
  return collecting;
}

void Fit::ready(const std::vector<Metric>& metrics, const std::vector<Metric>& report_metrics,
                const RowList& rows) const {
  const EvaluatedRows data = components_.dataset().evaluated();
  fitted_metrics_.use_in(metrics, data.rows->groups());
  ready_breakdowns(report_metrics, fitted_metrics_, data, rows);
}

std::optional<AdaptationRecord> Fit::adaptation() const {
  const auto* const records = loop_->ask<RecordsAdaptation>();
  return records != nullptr ? std::optional(records->adaptation()) : std::nullopt;
}

std::vector<StructureRecord> Fit::structures() const {
  const auto* const records = loop_->ask<RecordsStructures>();
  return records != nullptr ? records->structures() : std::vector<StructureRecord>();
}

std::optional<std::int64_t> Fit::max_parameters() const {
  const auto* const records = loop_->ask<RecordsStructures>();
  return records != nullptr ? records->max_parameters() : std::nullopt;
}

bool Fit::transforms_targets() const {
  return change_targets(transforms(), components_.data_spec().targets,
                        components_.precision().data());
}

StateDict Fit::preprocessing() const {
  StateDict state;
  StateDict transforms;
  for (std::size_t i = 0; i < transforms_.size(); ++i) {
    transforms.put(std::to_string(i), transforms_[i]->state());
  }
  state.put("transforms", std::move(transforms));
  known_groups_.save_in(state);
  losses_.save_in(state);
  fitted_metrics_.save_in(state);
  // For prediction: dictionaries of the data (class names, columns), and the shape of the rows
  // before the transforms.
  state.put("data", components_.dataset().provider().state());
  state.put("data_spec", to_json(components_.rows().spec()));
  return state;
}

void load_transforms(const std::vector<std::unique_ptr<Transform>>& transforms,
                     const StateDict& preprocessing) {
  const StateDict& saved = preprocessing.part("transforms");
  for (std::size_t i = 0; i < transforms.size(); ++i) {
    transforms[i]->load_state(saved.part(std::to_string(i)));
  }
}

}  // namespace treadle::internal

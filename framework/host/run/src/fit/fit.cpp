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

#include "data/rounded_columns.h"
#include "data/target_units.h"
#include "evaluation/breakdowns.h"
#include "fit/deadline.h"
#include "model/saved_model.h"

// One training, from its rows to its evaluations: prepare(), train(), then validate() and test().
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

Fit::Fit(const DocumentComponents& components, FitId id, FitRows rows, Timeline* timeline)
    : components_(components),
      id_(std::move(id)),
      rows_(std::move(rows)),
      timeline_(timeline),
      stream_(another_stream(components.device().device())),
      random_(id_.random(RandomStreams(components.workflow().seed))),
      losses_(components.loss_terms()) {}

Fit::~Fit() = default;

std::vector<const Transform*> Fit::transforms() const {
  std::vector<const Transform*> result;
  for (const auto& transform : transforms_)
    result.push_back(transform.get());
  return result;
}

void Fit::prepare(const StateDict* saved_preprocessing) {
  const Timeline::Span span(timeline_, Phase::kLoading);
  const StreamScope on_stream(stream_);
  const RowReader& rows = components_.rows();
  transforms_ = components_.make_transforms();
  if (saved_preprocessing != nullptr) {
    load_transforms(transforms_, *saved_preprocessing);
  } else {
    // Each transform is fitted on the training rows as the transforms before it leave them.
    // Validation and test rows have no part in it: a statistic of theirs would leak into the
    // training. Nor have those to come, where each is tested before it is trained on.
    std::vector<const Transform*> fitted;
    for (const auto& transform : transforms_) {
      const engine::TransformedRows so_far(rows, fitted, components_.precision().data());
      transform->fit(so_far, rows_to_fit());
      fitted.push_back(transform.get());
    }
  }
  const EvaluatedRows data = components_.dataset().evaluated();
  known_groups_ = KnownGroups(transforms(), data.names);
  for (const RowList* const used : {&rows_.training, &rows_.validation, &rows_.test})
    known_groups_.expect_known(data, *used);
  // Losses come after the transforms, on whose data they are fitted, and before the model, whose
  // outputs they determine.
  const engine::TransformedRows transformed(rows, transforms(), components_.precision().data());
  preparation_ = engine::BatchPreparation(rows.spec(), transforms(), components_.preparation());
  const DataSpec& prepared = preparation_.spec();
  if (saved_preprocessing != nullptr) {
    losses_.load_from(*saved_preprocessing);
  } else {
    losses_.fit(transformed, rows_to_fit());
    if (components_.precision().data() == at::kFloat)
      notes_ = notes_on_rounding(transformed, rows_to_fit());
  }
  model_spec_ = components_.model_spec(prepared);
  objective_.emplace(losses_.objective(prepared));
  {
    const TaskRandom random(random_.seed("init"));
    model_ = components_.make_model(model_spec_);
    // A replica draws weights of its own, which are never used: the training step makes its
    // parameters views of the model's (docs/decisions/0008).
    while (replicas_.size() + 1 < components_.shards())
      replicas_.push_back(components_.make_model(model_spec_));
  }
  if (const std::string choice = execution_choice(*model_); !choice.empty())
    notes_.push_back("execution: " + choice);
  if (saved_preprocessing == nullptr) {  // else weights are in the checkpoint
    if (model_spec_.dtype != components_.precision().data())
      draw_weights_as_float32();
    load_given_weights();
  }
  move_to_device();
  optimizer_ = components_.make_optimizer();
  groups_ = components_.make_optimizer_groups(*model_);
  schedule_ = components_.make_schedule();
  loop_ = components_.make_training();
  sampler_ = components_.make_sampler();
  gradients_ = components_.make_gradients();
  callbacks_ = components_.make_callbacks();
  if (deadline_)
    callbacks_.push_back(std::make_unique<Deadline>(*deadline_));
  metrics_ = components_.make_metrics();
  report_metrics_ = components_.make_report_metrics();
  if (saved_preprocessing != nullptr) {
    fitted_metrics_.load_from(*saved_preprocessing);
  } else {
    fitted_metrics_.fit(metrics_, components_.dataset().evaluated(), rows_to_fit());
  }
  ready(metrics_, report_metrics_, rows_.validation);

  const TrainingPlan plan = components_.training_plan();
  const std::optional<engine::StreamInput> stream = components_.stream();
  const RowList training_rows =
      plan.structure_fraction ? rows_beside_structure(*plan.structure_fraction) : rows_.training;
  const auto rows_to_train = static_cast<std::int64_t>(training_rows.size());
  // Checked here, where the message can name the document's keys. A stream is not checked: the
  // number of its rows may be unknown before its end.
  const std::int64_t samples =
      sampler_ && !stream ? sampler_->samples(rows_to_train) : rows_to_train;
  if (!stream && plan.drop_last && samples < plan.batch_size) {
    throw DataError("training.drop_last leaves nothing: there are " +
                    std::to_string(rows_to_train) + " training rows" +
                    (samples == rows_to_train ? ""
                                              : ", of which the sampler draws " +
                                                    std::to_string(samples) + " in a pass,") +
                    " and a batch has " + std::to_string(plan.batch_size));
  }
  if (!stream && !plan.drop_last && !plan.drop_single && !objective_->is_additive() &&
      samples > 1 && samples % plan.batch_size == 1) {
    notes_.push_back(
        "loss: the last batch of each epoch has one row, of which a loss over whole batches has no "
        "gradient; \"drop_last\": \"single\" in \"training\" leaves it out");
  }
  const bool tests_first = plan.test_window.has_value();
  const engine::PipelineOptions to_train{.batch_size = plan.batch_size,
                                         .shuffle = plan.shuffle,
                                         .sampler = sampler_.get(),
                                         .drop_last = plan.drop_last,
                                         .fewest_rows = fewest_rows(),
                                         .batches_per_epoch = plan.steps_per_epoch,
                                         .one_pass = tests_first,
                                         .training = !tests_first,  // rows are tested as they are
                                         .timeline = timeline_,
                                         .device = components_.device().device(),
                                         .staging = components_.device().staging()};
  training_ =
      stream ? std::make_unique<engine::BatchPipeline>(*stream, preparation_, to_train, random_)
             : std::make_unique<engine::BatchPipeline>(rows, training_rows, preparation_, to_train,
                                                       random_);
  if (!rows_.validation.empty() || tests_first) {
    const engine::PipelineOptions to_evaluate{
        .batch_size =
            engine::evaluation_batch(model_spec_, plan.batch_size, plan.evaluation_batch_size),
        .timeline = timeline_,
        .host_part_only = true,
        .staging = components_.device().staging()};
    validation_ = std::make_unique<engine::BatchPipeline>(
        rows, tests_first ? rows_to_fit() : rows_.validation, preparation_, to_evaluate,
        random_.part("validation", 0));
  }

  if (plan.structure_fraction)
    open_structure_rows();

  setup_.model = model_.get();
  setup_.objective = &*objective_;
  setup_.optimizer = optimizer_.get();
  setup_.schedule = schedule_.get();
  setup_.training = training_.get();
  (tests_first ? setup_.example : setup_.validation) = validation_.get();
  if (tests_first && !stream)
    setup_.row_groups = rows.groups();
  setup_.group_names = data.names;
  setup_.metrics = views(metrics_);
  setup_.preparation = &preparation_;
  for (const auto& callback : callbacks_)
    setup_.callbacks.push_back(callback.get());
  // A refit has no validation rows to stop or choose by, so the planner fixes its length.
  setup_.is_refit = rows_.fixed_epochs > 0;
  setup_.epochs = setup_.is_refit ? rows_.fixed_epochs : plan.epochs;
  setup_.max_steps = plan.max_steps;
  if (tests_first)
    end_with_the_data();
  setup_.evaluate_every = plan.evaluate_every;
  setup_.clipping = plan.clipping;
  setup_.gradients = gradients_.get();
  for (const auto& replica : replicas_)
    setup_.replicas.push_back(replica.get());
  for (const OptimizerGroup& group : groups_)
    setup_.groups.push_back({group.optimizer.get(), group.parameters, group.schedule.get()});
  setup_.checkpoint_every = plan.checkpoint_every;
  setup_.keep_checkpoints = plan.keep_checkpoints;
  setup_.timeline = timeline_;
  setup_.backend = components_.device().staging();
  setup_.precision = components_.precision();
  setup_.capture = components_.capture();
  if (components_.device().info.tensors_only)
    setup_.path = ParameterView::Path::kTensors;
}

/// What transforms and losses are fitted on: the rows that train; where each is tested first, those
/// of the first window.
RowList Fit::rows_to_fit() const {
  const std::optional<std::int64_t> window = components_.training_plan().test_window;
  const std::size_t all = rows_.training.size();
  return rows_.training.part(
      0, std::min(all, static_cast<std::size_t>(window.value_or(static_cast<std::int64_t>(all)))));
}

/// The training rows that are left for the weights; the others are in structure_rows_.
RowList Fit::rows_beside_structure(double fraction) {
  if (components_.stream()) {
    throw DataError(
        "the training rows are only read in their order, and the loop sets some aside; choose data "
        "that is read at random");
  }
  const auto rows = static_cast<std::int64_t>(rows_.training.size());
  if (rows < 2)
    throw DataError("the loop sets training rows aside, and there is " + std::to_string(rows));
  const std::int64_t count =
      std::clamp<std::int64_t>(std::llround(fraction * static_cast<double>(rows)), 1, rows - 1);
  std::vector<std::int64_t> places = random_permutation(rows, random_.bits("set_aside"));
  places.resize(static_cast<std::size_t>(count));
  std::sort(places.begin(), places.end());
  const RowList chosen(std::move(places));
  structure_rows_ = rows_.training.at(chosen);
  return rows_.training.at(all_rows_but(rows, chosen));
}

/// What a structure is trained on is prepared as other training rows are.
void Fit::open_structure_rows() {
  const TrainingPlan plan = components_.training_plan();
  const RowReader& rows = components_.rows();
  const RandomStreams random = random_.part("structure", 0);
  structure_training_ = std::make_unique<engine::BatchPipeline>(
      rows, structure_rows_, preparation_,
      engine::PipelineOptions{.batch_size = plan.batch_size,
                              .shuffle = true,
                              .fewest_rows = fewest_rows(),
                              .training = true,
                              .timeline = timeline_,
                              .device = components_.device().device(),
                              .staging = components_.device().staging()},
      random);
  structure_evaluation_ = std::make_unique<engine::BatchPipeline>(
      rows, structure_rows_, preparation_,
      engine::PipelineOptions{.batch_size = engine::evaluation_batch(model_spec_, plan.batch_size,
                                                                     plan.evaluation_batch_size),
                              .timeline = timeline_,
                              .host_part_only = true,
                              .staging = components_.device().staging()},
      random.part("evaluation", 0));
  setup_.structure_training = structure_training_.get();
  setup_.structure_evaluation = structure_evaluation_.get();
}

/// Of a last batch that is trained on. With fewer than two for each shard, one of them would have a
/// row alone.
std::int64_t Fit::fewest_rows() const {
  return components_.training_plan().drop_single
             ? 2 * static_cast<std::int64_t>(components_.shards())
             : 1;
}

/// The length of a training of one pass, as far as the number of rows is known: in steps, and in
/// windows.
void Fit::end_with_the_data() {
  const TrainingPlan plan = components_.training_plan();
  const std::int64_t steps = training_->batches_per_pass().value_or(DataProvider::kEndless);
  if (steps != DataProvider::kEndless)
    setup_.max_steps = std::min(steps, plan.max_steps.value_or(steps));
  if (setup_.max_steps)
    setup_.epochs = (*setup_.max_steps + *plan.steps_per_epoch - 1) / *plan.steps_per_epoch;
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

void Fit::load_given_weights() {
  // A warm start takes precedence over the document's file: every fit of the run has the file, and
  // the planner chose these weights for this fit.
  if (start_weights_) {
    load_module_state(*model_, *start_weights_);
    start_weights_.reset();
    return;
  }
  std::vector<WeightsSource> sources;
  std::map<std::filesystem::path, TensorFile> files;  // several sources may be of one
  for (const GivenWeights& given : components_.given_weights()) {
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
  const TrainingPlan plan = components_.training_plan();
  const engine::PipelineOptions to_evaluate{
      .batch_size =
          engine::evaluation_batch(model_spec_, plan.batch_size, plan.evaluation_batch_size),
      .timeline = timeline_,
      .host_part_only = true,
      .staging = components_.device().staging()};
  engine::BatchPipeline rows(components_.rows(), rows_.test, preparation_, to_evaluate,
                             random_.part("test", 0));
  // Fresh metrics: others hold what validate() accumulated.
  const std::vector<Metric> metrics = components_.make_metrics();
  tested_metrics_ = components_.make_report_metrics();
  ready(metrics, tested_metrics_, rows_.test);
  engine::SessionSetup setup = setup_;
  setup.validation = &rows;
  setup.metrics = views(metrics);
  const std::vector<TargetMetric> extra = views(tested_metrics_);
  setup.metrics.insert(setup.metrics.end(), extra.begin(), extra.end());
  return engine::validate(setup, std::move(stop));
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

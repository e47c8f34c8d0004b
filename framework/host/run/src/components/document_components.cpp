#include "components/document_components.h"

#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <unordered_set>

#include <treadle/core/components/module_state.h>
#include <treadle/core/validation/set_aside.h>
#include <treadle/engine/transformed_rows.h>
#include <treadle/tensor/task_random.h>

#include "components/whole_batches.h"
#include "document/no_steps.h"
#include "document/shard_count.h"
#include "evaluation/collected_predictions.h"
#include "evaluation/forecast_sample.h"
#include "resources/run_precision.h"

// From one resolved document to components. settle() first fills in what the document leaves open
// and the machine or the data decides: device, task, loss, metrics, shards. The document is then
// complete and saved with the run; a run of the saved document has nothing left to choose, and
// gives the same bits.
//
// The make_...() functions are const and return fresh objects, since fits run at the same time.
// Shared by all fits are the losses, whose const functions are thread-safe, and the data.

namespace treadle::internal {
namespace {

/// What a document gets where it says nothing, by the kind of target.
struct TargetDefaults {
  TargetKind kind;
  const char* task;
  const char* loss;
  std::array<const char*, 2> metrics;
  const char* report_metric;
};
constexpr TargetDefaults kDefaults[] = {
    {TargetKind::kClasses,
     "classification",
     "cross_entropy",
     {"accuracy", nullptr},
     "confusion_matrix"},
    {TargetKind::kNumbers, "regression", "mse", {"rmse", "r2"}, "residuals"},
    {TargetKind::kLabels,
     "multi-label classification",
     "bce_with_logits",
     {"macro_f1", nullptr},
     nullptr},
    {TargetKind::kDistribution,
     "prediction of a distribution",
     "cross_entropy",
     {"log_loss", nullptr},
     nullptr},
};

const TargetDefaults& defaults_for(TargetKind kind) {
  for (const TargetDefaults& entry : kDefaults) {
    if (entry.kind == kind)
      return entry;
  }
  throw ContractViolation("a kind of target without defaults");
}

/// Whether there are at least two groups and at most `most`.
bool has_several_groups(const RowReader& rows, std::size_t most) {
  const at::Tensor groups = rows.groups();
  if (!groups.defined())
    return false;
  const at::Tensor dense = groups.contiguous();
  const auto* const begin = dense.data_ptr<std::int64_t>();
  std::unordered_set<std::int64_t> different;
  // Rows of a group mostly follow one another: millions of them are passed over.
  for (std::int64_t i = 0; i < dense.numel() && different.size() <= most; ++i) {
    if (i == 0 || begin[i] != begin[i - 1])
      different.insert(begin[i]);
  }
  return different.size() > 1 && different.size() <= most;
}

/// With every parameter in a group, a value that each group has as well is nobody's. Not so the
/// learning rate: it is what a schedule changes.
void expect_rest_is_used(const Config& optimizer, const nlohmann::json& schema) {
  const nlohmann::json properties = schema.value("properties", nlohmann::json::object());
  const std::vector<Config> groups = optimizer.children("groups");
  for (const auto& [key, property] : properties.items()) {
    const bool is_given = optimizer.has(key) && key != "learning_rate" &&
                          optimizer.json()[key] != property.value("default", nlohmann::json());
    if (is_given && std::all_of(groups.begin(), groups.end(),
                                [&key = key](const Config& group) { return group.has(key); })) {
      optimizer.fail(key,
                     "has no effect: every parameter is in a group, and each group has its own; "
                     "leave it out here, or there");
    }
  }
}

}  // namespace

DocumentComponents::DocumentComponents(const Runtime& runtime, ResolvedWorkflow workflow,
                                       const Dataset& dataset, bool keeps_predictions)
    : runtime_(runtime),
      workflow_(std::move(workflow)),
      precision_(precision_of(workflow_)),
      dataset_(dataset),
      keeps_predictions_(keeps_predictions),
      spec_(dataset.spec()) {
  runtime_.expect_usable(workflow_.resolved);
  settle();
}

std::optional<engine::StreamInput> DocumentComponents::stream() const {
  if (!dataset_.is_stream())
    return std::nullopt;
  const TrainingPlan plan = training_plan();
  engine::StreamInput input;
  input.data = &dataset_.provider();
  input.first_row = dataset_.validation_rows();
  input.window_rows = std::max(plan.shuffle_buffer, plan.batch_size);
  return input;
}

void DocumentComponents::settle() {
  settle_device();
  settle_precision();
  if (dataset_.has_guessed_task())
    settle_task();
  settle_training();
  settle_losses();
  settle_metrics();
  settle_shards();
  runtime_.expect_usable(workflow_.resolved);  // what the data decided may be of other plugins
}

void DocumentComponents::settle_device() {
  device_ = find_device(runtime_, workflow_);
  nlohmann::json& device = workflow_.resolved.at("resources").at("device");
  if (device == "auto" && !device_.device().is_cpu())
    choices_.push_back("device: " + device_.name + " (" + device_.info.name + ")");
  for (const std::string& why : device_.unusable)
    choices_.push_back("device: without " + why);
  device = device_.name;
}

void DocumentComponents::settle_precision() {
  expect_possible(precision_, device_, workflow_);
  if (const std::string why = why_slow(precision_, device_); !why.empty())
    choices_.push_back("precision: " + why);
}

void DocumentComponents::settle_task() {
  const std::string task = this->task();
  if (nlohmann::json& data = workflow_.resolved.at("data");
      data.contains("task") && (task == "classification" || task == "regression"))
    data["task"] = task;
  for (const TargetSpec& target : spec_.targets) {
    choices_.push_back(
        std::string("task: ") + defaults_for(target.kind).task + " of \"" + target.name + "\"" +
        (target.class_count() > 0 ? " (" + std::to_string(target.class_count()) + " classes)"
                                  : std::string()));
  }
}

/// Puts what was chosen for the user where the document would have it, checked like the rest.
void DocumentComponents::settle_slot(const std::string& key, const nlohmann::json& value) {
  const Checked checked = check(value, workflow_schema().at("properties").at(key),
                                runtime_.schemas(), *workflow_.document, "/" + key);
  if (!checked.problems.empty())
    throw DocumentError(checked.problems);
  workflow_.resolved[key] = checked.value;
}

void DocumentComponents::settle_losses() {
  if (!workflow_.resolved.contains("loss")) {
    nlohmann::json losses = nlohmann::json::array();
    std::string text;
    for (const TargetSpec& target : spec_.targets) {
      const char* const name = defaults_for(target.kind).loss;
      losses.push_back({{"use", name}});
      if (spec_.targets.size() > 1)
        losses.back()["target"] = target.name;
      text += (text.empty() ? "" : ", ") + std::string(name) +
              (spec_.targets.size() > 1 ? " of \"" + target.name + "\"" : std::string());
    }
    settle_slot("loss", losses.size() == 1 ? losses.front() : losses);
    choices_.push_back("loss: " + text);
  }
  losses_.clear();
  terms_.clear();
  const std::vector<Config> given = slots("loss");
  std::vector<std::string> names;
  for (const Config& slot : given) {
    Objective::Term term;
    term.target = target_of(slot);
    term.factor = slot.get_or<double>("factor", 1);
    const std::string& target = spec_.targets[term.target].name;
    term.name = given.size() == 1 ? "loss" : target;
    if (std::find(names.begin(), names.end(), term.name) != names.end())
      term.name = target + "." + name_in(slot);
    if (std::find(names.begin(), names.end(), term.name) != names.end())
      slot.fail("use", "this loss of \"" + target + "\" is given twice; leave one of them out");
    names.push_back(term.name);
    losses_.push_back(make_in<Loss>(runtime_, slot, "loss"));
    term.loss = losses_.back().get();
    terms_.push_back(term);
  }
  expect_each_target_has_a_loss();
  expect_whole_batches();
}

/// The target a loss names, or the only one.
std::size_t DocumentComponents::target_of(const Config& slot) const {
  std::string names;
  for (std::size_t i = 0; i < spec_.targets.size(); ++i) {
    if (slot.has("target") && spec_.targets[i].name == slot.get<std::string>("target"))
      return i;
    names += (names.empty() ? "\"" : ", \"") + spec_.targets[i].name + "\"";
  }
  if (slot.has("target"))
    slot.fail("target", "the data has no such target; it has " + names);
  if (spec_.targets.size() > 1) {
    slot.fail("", "the data has several targets (" + names +
                      "): name the one that is meant, \"target\": …");
  }
  return 0;
}

void DocumentComponents::expect_each_target_has_a_loss() const {
  for (std::size_t target = 0; target < spec_.targets.size(); ++target) {
    const bool has_loss =
        std::any_of(terms_.begin(), terms_.end(),
                    [&](const Objective::Term& term) { return term.target == target; });
    if (!has_loss) {
      slots("loss").back().fail("", "the target \"" + spec_.targets[target].name +
                                        "\" has no loss; add one to the list, or leave the "
                                        "target out of the data");
    }
  }
}

/// A loss that is no sum over rows cannot be computed in parts.
void DocumentComponents::expect_whole_batches() const {
  const std::vector<Config> given = slots("loss");
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (terms_[i].loss->is_additive())
      continue;
    const nlohmann::json& shards = workflow_.resolved.at("resources").at("shards");
    if (shards.is_number() && shards.get<int>() > 1) {
      given[i].fail("use",
                    "is computed over whole batches and cannot be cut into shards; set "
                    "resources.shards to 1");
    }
    if (const auto strategy = make_gradients()) {
      internal::expect_whole_batches(*strategy, workflow_.slot("training").child("gradients"),
                                     given[i].get<std::string>("use"));
    }
    if (training_plan().batch_size == 1) {
      given[i].fail("use",
                    "is computed over whole batches, and of one row it has no gradient; set "
                    "training.batch_size to 2 or more");
    }
  }
}

void DocumentComponents::settle_metrics() {
  if (workflow_.resolved.contains("metrics"))
    return;
  nlohmann::json names = nlohmann::json::array();
  std::string text;
  for (const TargetSpec& target : spec_.targets) {
    for (const char* metric : defaults_for(target.kind).metrics) {
      if (metric == nullptr)
        continue;
      names.push_back({{"use", metric}});
      if (spec_.targets.size() > 1)
        names.back()["target"] = target.name;
      text += (text.empty() ? "" : ", ") + metric_prefix(target) + metric;
    }
  }
  settle_slot("metrics", names);
  choices_.push_back("metrics: " + text);
}

std::string DocumentComponents::metric_prefix(const TargetSpec& target) const {
  return spec_.targets.size() > 1 ? target.name + "/" : std::string();
}

/// So that the run's document has them written out.
void DocumentComponents::settle_training() {
  const TrainingPlan plan = training_plan();
  nlohmann::json& training = workflow_.resolved.at("training");
  training["epochs"] = plan.epochs ? nlohmann::json(*plan.epochs) : nlohmann::json("unlimited");
  if (!training.contains("sampler"))
    training["shuffle"] = plan.shuffle;
  if (dataset_.is_stream() && dataset_.validation_rows() > 0) {
    choices_.push_back("stream: the first " + std::to_string(dataset_.validation_rows()) +
                       " rows validate; those after them train, in windows of " +
                       std::to_string(std::max(plan.shuffle_buffer, plan.batch_size)));
  }
}

bool DocumentComponents::has_open_batch_size() const {
  return !workflow_.resolved.at("training").at("batch_size").is_number();
}

void DocumentComponents::set_batch_size(std::int64_t rows) {
  workflow_.resolved.at("training").at("batch_size") = rows;
}

void DocumentComponents::settle_batch_size(std::int64_t rows, const std::string& why) {
  set_batch_size(rows);
  choices_.push_back("batch size: " + std::to_string(rows) + " (" + why + ")");
}

/// Never from the machine: the result depends on it.
void DocumentComponents::settle_shards() {
  nlohmann::json& shards = workflow_.resolved.at("resources").at("shards");
  if (shards.is_number())
    return;
  const bool is_additive =
      std::all_of(terms_.begin(), terms_.end(),
                  [](const Objective::Term& term) { return term.loss->is_additive(); });
  ShardChoice choice{1, "the loss is computed over whole batches"};
  if (is_additive) {
    const std::shared_ptr<Model> model = tried_model();
    choice = model == nullptr
                 ? ShardChoice{1, "the work of a step is not known before the training"}
                 : choose_shards(*model, training_plan().batch_size);
  }
  shards = choice.shards;
  choices_.push_back("shards: " + shards.dump() + " (" + choice.reason + ")");
}

/// A model like those that will be trained, to see how large it is: for the data as transforms
/// leave it that have been fitted to a few rows. Null where that does not work; the training will
/// say why.
std::shared_ptr<Model> DocumentComponents::tried_model() const {
  constexpr std::int64_t kRows = 1024;
  if (!dataset_.has_rows())
    return nullptr;
  const std::int64_t count = rows().rows();
  std::vector<std::int64_t> some;
  for (std::int64_t i = 0; i < std::min(count, kRows); ++i)
    some.push_back(count <= kRows ? i : i * count / kRows);
  const TaskRandom random(0);
  try {
    const std::vector<std::unique_ptr<Transform>> transforms = make_transforms();
    std::vector<const Transform*> fitted;
    for (const auto& transform : transforms) {
      const engine::TransformedRows so_far(rows(), fitted, precision_.data());
      transform->fit(so_far, some);
      fitted.push_back(transform.get());
    }
    return make_model(model_spec(
        engine::BatchPreparation(rows().spec(), fitted, {.dtype = precision_.data()}).spec()));
  } catch (const Error&) {
    return nullptr;
  }
}

const DeviceBackend* DocumentComponents::capture() const {
  const bool is_captured = workflow_.resolved.at("resources").at("execution") == "captured";
  return is_captured ? device_.backend.get() : nullptr;
}

std::size_t DocumentComponents::shards() const {
  return workflow_.resolved.at("resources").at("shards").get<std::size_t>();
}

void DocumentComponents::make_plan() {
  if (dataset_.is_stream()) {
    plan_ = dataset_.plan_of_stream();
    return;
  }
  if (!workflow_.resolved.contains("validation")) {
    Fold all;
    all.name = "all";
    all.training = all_rows_but(rows().rows(), {});
    plan_.folds = {std::move(all)};
    return;
  }
  plan_ = make<CrossValidator>("validation")->plan(split_request());
}

SplitRequest DocumentComponents::split_request() const {
  const RowReader& rows = this->rows();
  SplitRequest request;
  request.rows = rows.rows();
  request.targets = rows.spec().targets;
  for (std::size_t target = 0; target < request.targets.size(); ++target) {
    const bool has_one_a_row = request.targets[target].positions().empty();
    request.target_values.push_back(has_one_a_row ? rows.targets(target) : at::Tensor());
  }
  request.groups = rows.groups();
  request.timestamps = rows.timestamps();
  request.label_ends = rows.label_ends();
  request.random = RandomStreams(workflow_.seed).part("validation", 0);
  request.samples = dataset_.samples();
  request.data = &dataset_.source();
  request.columns = dataset_.columns();
  return request;
}

std::vector<std::unique_ptr<Transform>> DocumentComponents::make_transforms() const {
  return make_each<Transform>(runtime_, workflow_, "transforms");
}

std::shared_ptr<Model> DocumentComponents::make_model(const ModelSpec& spec) const {
  std::shared_ptr<Model> model = make<ModelProvider>("model")->create(spec);
  model->prepare_for(precision_);
  return model;
}

std::vector<GivenWeights> DocumentComponents::given_weights() const {
  std::vector<GivenWeights> given;
  const Config slot = workflow_.slot("model");
  if (!slot.has("weights"))
    return given;
  const auto add = [&](const Config& file) {
    const auto from = file.get_or<std::string>("from", "");
    given.push_back({file.get<std::string>("path"), file.get<bool>("strict"), from,
                     file.get_or<std::string>("to", from)});
  };
  if (slot.json().at("weights").is_object()) {
    add(slot.child("weights"));
  } else {
    for (const Config& file : slot.children("weights"))
      add(file);
  }
  return given;
}

std::unique_ptr<Optimizer> DocumentComponents::make_optimizer() const {
  if (!workflow_.resolved.contains("optimizer"))
    return std::make_unique<NoOptimizer>();
  return make<Optimizer>("optimizer");
}

/// Of a kind of its own, or the document's with other values.
std::unique_ptr<Optimizer> DocumentComponents::make_group_optimizer(const Config& slot,
                                                                    const Config& group) const {
  const bool has_own_kind = group.has("optimizer");
  nlohmann::json parameters = component_config(slot, "optimizer").json();
  for (const auto& [key, value] : group.json().items()) {
    if (key == "parameters" || key == "schedule" || key == "optimizer")
      continue;
    if (has_own_kind)
      group.fail(key, "the group has an optimizer of its own; set this in its \"optimizer\"");
    parameters[key] = value;
  }
  if (has_own_kind)
    return make_nested<Optimizer>(runtime_, group.child("optimizer"));
  return runtime_.registry().make<Optimizer>(name_in(slot),
                                             Config(parameters, group.pointer(), group.places()));
}

std::vector<OptimizerGroup> DocumentComponents::make_optimizer_groups(const Model& model) const {
  std::vector<OptimizerGroup> groups;
  if (!workflow_.resolved.contains("optimizer"))
    return groups;
  const Config slot = workflow_.slot("optimizer");
  if (!slot.has("groups"))
    return groups;
  const std::vector<std::string> all = distinct_parameter_names(model);
  std::vector<std::string> left = all;
  const std::vector<Config> slots = slot.children("groups");
  for (const Config& group : slots) {
    groups.push_back({make_group_optimizer(slot, group),
                      {},
                      group.has("schedule") ? schedule_in(group.child("schedule")) : nullptr});
    for (const std::string& pattern : group.get<std::vector<std::string>>("parameters")) {
      const auto matches = [&](const std::string& name) {
        return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
      };
      const auto taken = std::stable_partition(left.begin(), left.end(), std::not_fn(matches));
      groups.back().parameters.insert(groups.back().parameters.end(), taken, left.end());
      left.erase(taken, left.end());
    }
    if (groups.back().parameters.empty()) {
      std::string names;
      for (const std::string& name : all)
        names += (names.empty() ? "" : ", ") + name;
      group.fail(
          "parameters",
          "no parameter matches, or an earlier group has all that do; the model's are " + names);
    }
  }
  if (!slots.empty() && slots.back().json().size() == 1) {
    // Not so an earlier one: it keeps its parameters from those after it.
    slots.back().fail(
        "parameters",
        "the last group has no value of its own, and no effect; give it one, or leave "
        "it out");
  }
  if (!groups.empty() && left.empty())
    expect_rest_is_used(slot, *runtime_.schemas().find("optimizer", name_in(slot)).schema);
  return groups;
}

std::unique_ptr<LearningRateSchedule> DocumentComponents::make_schedule() const {
  if (!workflow_.resolved.contains("schedule"))
    return std::make_unique<NoSchedule>();
  return schedule_in(workflow_.slot("schedule"));
}

std::unique_ptr<LearningRateSchedule> DocumentComponents::schedule_in(const Config& slot) const {
  auto schedule = make_in<LearningRateSchedule>(runtime_, slot, "schedule");
  if (!slot.has("warmup"))
    return schedule;
  if (!slot.json().at("warmup").is_object())
    return std::make_unique<WarmedUpSchedule>(std::move(schedule), slot.get<Duration>("warmup"));
  const Config warmup = slot.child("warmup");
  return std::make_unique<WarmedUpSchedule>(std::move(schedule), warmup.get<Duration>("length"),
                                            warmup.find<double>("start_factor"));
}

std::unique_ptr<TrainingWorkflow> DocumentComponents::make_training() const {
  return make<TrainingWorkflow>("training");
}

std::unique_ptr<Sampler> DocumentComponents::make_sampler() const {
  const Config slot = workflow_.slot("training");
  if (!slot.has("sampler"))
    return nullptr;
  if (slot.has("shuffle"))
    slot.fail("shuffle", "has no effect beside \"sampler\", which decides the order; remove it");
  return make_nested<Sampler>(runtime_, slot.child("sampler"));
}

std::unique_ptr<GradientStrategy> DocumentComponents::make_gradients() const {
  const Config slot = workflow_.slot("training");
  return slot.has("gradients") ? make_nested<GradientStrategy>(runtime_, slot.child("gradients"))
                               : nullptr;
}

std::vector<std::unique_ptr<TrainingCallback>> DocumentComponents::make_callbacks() const {
  std::vector<std::unique_ptr<TrainingCallback>> callbacks;
  const Config slot = workflow_.slot("training");
  for (const auto& [key, property] : slot_schema("training").at("properties").items()) {
    if (property.value("x-treadle-component", "") == "callback" && slot.has(key))
      callbacks.push_back(make_nested<TrainingCallback>(runtime_, slot.child(key)));
  }
  for (const Config& callback : slot.children("callbacks"))
    callbacks.push_back(make_nested<TrainingCallback>(runtime_, callback));
  return callbacks;
}

Metric DocumentComponents::started(std::unique_ptr<MetricComputer> metric,
                                   std::size_t target) const {
  const TargetSpec& spec = spec_.targets[target];
  metric->start(spec);
  return {std::move(metric), target, spec, metric_prefix(spec)};
}

/// Those a metric is computed for: the one it names, or all it works on.
std::vector<std::size_t> DocumentComponents::targets_of_metric(const Config& slot) const {
  if (slot.has("target") || spec_.targets.size() == 1)
    return {target_of(slot)};
  const std::vector<TargetKind> kinds =
      target_kinds(runtime_.registry().describe<MetricComputer>(name_in(slot)).schema);
  std::vector<std::size_t> targets;
  for (std::size_t i = 0; i < spec_.targets.size(); ++i) {
    if (std::find(kinds.begin(), kinds.end(), spec_.targets[i].kind) != kinds.end())
      targets.push_back(i);
  }
  if (targets.empty())
    return {target_of(slot)};  // the error that names them all
  return targets;
}

std::vector<Metric> DocumentComponents::make_metrics() const {
  std::vector<Metric> metrics;
  for (const Config& slot : slots("metrics")) {
    for (const std::size_t target : targets_of_metric(slot))
      metrics.push_back(started(make_in<MetricComputer>(runtime_, slot, "metrics"), target));
  }
  return metrics;
}

std::vector<Metric> DocumentComponents::make_report_metrics() const {
  std::vector<std::string> left_out;
  return make_report_metrics(left_out);
}

std::vector<Metric> DocumentComponents::make_report_metrics(
    std::vector<std::string>& left_out) const {
  std::vector<Metric> metrics;
  const std::vector<std::string> known = runtime_.registry().names<MetricComputer>();
  for (std::size_t target = 0; target < spec_.targets.size(); ++target) {
    const char* const name = defaults_for(spec_.targets[target].kind).report_metric;
    if (name == nullptr || std::find(known.begin(), known.end(), name) == known.end())
      continue;
    try {
      metrics.push_back(started(runtime_.registry().make<MetricComputer>(name), target));
    } catch (const DataError& error) {
      // Nobody asked for it: a table of 1500 classes is not to end a training.
      left_out.push_back(std::string("report: without ") + name + " (" + error.what() + ")");
    }
  }
  if (dataset_.has_rows() && !dataset_.is_stream()) {
    std::vector<Metric> parts = make_breakdowns(dataset_.evaluated());
    std::move(parts.begin(), parts.end(), std::back_inserter(metrics));
  }
  // Behind all others, so that those have the same places with and without.
  if (keeps_predictions_)
    metrics.push_back(started(std::make_unique<CollectedPredictions>(), 0));
  return metrics;
}

std::vector<MetricBreakdown::Made> DocumentComponents::metrics_of_part(
    std::size_t target, const TargetSpec& part) const {
  std::vector<MetricBreakdown::Made> made;
  std::size_t index = 0;
  for (const Config& slot : slots("metrics")) {
    for (const std::size_t of : targets_of_metric(slot)) {
      if (of == target) {
        made.push_back({make_in<MetricComputer>(runtime_, slot, "metrics"), index});
        made.back().metric->start(part);
      }
      ++index;
    }
  }
  return made;
}

std::vector<Metric> DocumentComponents::make_breakdowns(const EvaluatedRows& data) const {
  constexpr std::int64_t kMostSteps = 1000;
  std::vector<Metric> metrics;
  const bool has_series = has_several_groups(*data.rows, MetricsBySeries::kMostSeries);
  for (std::size_t target = 0; target < spec_.targets.size(); ++target) {
    const TargetSpec& spec = spec_.targets[target];
    if (spec.kind != TargetKind::kNumbers)
      continue;
    const auto make = [this, target](const TargetSpec& part) {
      return metrics_of_part(target, part);
    };
    const std::vector<std::int64_t> positions = spec.positions();
    if (data.rows->samples() != nullptr && positions.size() == 1 && positions[0] > 1 &&
        positions[0] <= kMostSteps) {
      metrics.push_back(started(std::make_unique<MetricsByStep>(target, make), target));
      metrics.push_back(started(std::make_unique<ForecastSample>(data, target), target));
    }
    if (has_series)
      metrics.push_back(
          started(std::make_unique<MetricsBySeries>(target, make, data.names), target));
  }
  return metrics;
}

std::vector<std::string> DocumentComponents::choices() const {
  std::vector<std::string> choices = choices_;
  make_report_metrics(choices);
  return choices;
}

std::vector<TargetMetric> views(const std::vector<Metric>& metrics) {
  std::vector<TargetMetric> views;
  for (const Metric& metric : metrics)
    views.push_back(metric.view());
  return views;
}

std::string DocumentComponents::task() const {
  std::string text;
  for (const TargetSpec& target : spec_.targets) {
    const std::string_view task = defaults_for(target.kind).task;
    if (text.find(task) == std::string::npos)
      text += (text.empty() ? "" : ", ") + std::string(task);
  }
  return text;
}

ModelSpec DocumentComponents::model_spec(const DataSpec& transformed) const {
  for (const PortSpec& port : transformed.inputs) {
    for (const Column& column : port.columns) {
      if (column.may_be_missing) {
        throw DataError("column \"" + column.name +
                        "\" may have missing values, in these rows or in those to predict, and a "
                        "model takes none; add "
                        "{\"use\": \"impute\"} to \"transforms\"");
      }
    }
  }
  return {transformed.inputs, Objective(terms_, transformed.targets).outputs(), transformed.targets,
          precision_.parameters};
}

}  // namespace treadle::internal

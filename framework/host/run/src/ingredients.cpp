#include "ingredients.h"

#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <functional>

#include <treadle/core/task_random.h>
#include <treadle/engine/transformed_rows.h>

#include "shard_count.h"

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

template <typename Value>
struct Word {
  const char* word;
  Value value;
};
constexpr Word<Task> kTasks[] = {{"auto", Task::kAuto},
                                 {"classification", Task::kClassification},
                                 {"regression", Task::kRegression}};
constexpr Word<TargetKind> kTargets[] = {{"classes", TargetKind::kClasses},
                                         {"numbers", TargetKind::kNumbers},
                                         {"labels", TargetKind::kLabels},
                                         {"distribution", TargetKind::kDistribution}};
constexpr Word<c10::ScalarType> kDtypes[] = {{"float32", at::kFloat}, {"float64", at::kDouble}};

template <typename Value, std::size_t N>
Value value_of(const Word<Value> (&table)[N], const std::string& word, Value fallback) {
  for (const Word<Value>& entry : table) {
    if (word == entry.word)
      return entry.value;
  }
  return fallback;
}

std::string name_in(const Config& slot) {
  return slot.get<std::string>("use");
}

/// The schema of a slot of the document; of one slot where the document may have a list of them.
const nlohmann::json& slot_schema(std::string_view key) {
  static const nlohmann::json properties = workflow_schema().at("properties");
  const nlohmann::json& schema = properties.at(std::string(key));
  if (schema.contains("items"))
    return schema.at("items");
  return schema.contains("anyOf") ? schema.at("anyOf").at(0) : schema;
}

/// The kinds of target a loss or metric works on, by its schema; empty: it does not say.
std::vector<TargetKind> target_kinds(const nlohmann::json& schema) {
  std::vector<TargetKind> kinds;
  const auto found = schema.find("x-treadle-target");
  if (found == schema.end())
    return kinds;
  const nlohmann::json words = found->is_array() ? *found : nlohmann::json::array({*found});
  for (const nlohmann::json& word : words) {
    for (const Word<TargetKind>& entry : kTargets) {
      if (word == entry.word)
        kinds.push_back(entry.value);
    }
  }
  return kinds;
}

}  // namespace

c10::ScalarType dtype_of(const ResolvedWorkflow& workflow) {
  return value_of(kDtypes, workflow.dtype, at::kFloat);
}

engine::ThreadBudget budget_for(const ResolvedWorkflow& workflow) {
  const nlohmann::json& resources = workflow.resolved.at("resources");
  const nlohmann::json& workers = resources.at("workers");
  return engine::ThreadBudget(workers.is_number() ? workers.get<int>() : 0,
                              resources.at("intra_op_threads").get<int>());
}

Config component_config(const Config& slot, std::string_view slot_key) {
  return Config(component_parameters(slot.json(), slot_schema(slot_key)), slot.pointer(),
                slot.places());
}

Ingredients::Ingredients(const Runtime& runtime, ResolvedWorkflow workflow)
    : runtime_(runtime), workflow_(std::move(workflow)), dtype_(dtype_of(workflow_)) {
  runtime_.expect_usable(workflow_.resolved);
}

template <typename Interface>
std::unique_ptr<Interface> Ingredients::make(std::string_view slot) const {
  const Config config = workflow_.slot(slot);
  return runtime_.registry().make<Interface>(name_in(config), component_config(config, slot));
}

std::vector<Config> Ingredients::slots(std::string_view key) const {
  const std::string name(key);
  std::vector<Config> slots;
  if (!workflow_.resolved.contains(name))
    return slots;
  const nlohmann::json& given = workflow_.resolved.at(name);
  if (given.is_object())
    return {workflow_.slot(key)};
  for (std::size_t i = 0; i < given.size(); ++i) {
    slots.emplace_back(given[i], "/" + name + "/" + std::to_string(i), workflow_.document);
  }
  return slots;
}

template <typename Interface>
std::unique_ptr<Interface> Ingredients::make_in(const Config& slot, std::string_view key) const {
  return runtime_.registry().make<Interface>(name_in(slot), component_config(slot, key));
}

template <typename Interface>
std::unique_ptr<Interface> Ingredients::make_nested(const Config& slot) const {
  return runtime_.registry().make<Interface>(
      name_in(slot), Config(component_parameters(slot.json(), nlohmann::json::object()),
                            slot.pointer(), slot.places()));
}

template <typename Interface>
std::vector<std::unique_ptr<Interface>> Ingredients::make_each(std::string_view key) const {
  std::vector<std::unique_ptr<Interface>> made;
  for (const Config& slot : slots(key))
    made.push_back(make_in<Interface>(slot, key));
  return made;
}

void Ingredients::open_data() {
  const Config slot = workflow_.slot("data");
  OpenRequest request;
  request.task = value_of(kTasks, slot.get_or<std::string>("task", "auto"), Task::kAuto);
  request.dtype = dtype_;
  request.seed = RandomStreams(workflow_.seed).seed("data");
  for (const Config& loss : slots("loss")) {
    const std::vector<TargetKind> kinds =
        target_kinds(runtime_.registry().describe<Loss>(name_in(loss)).schema);
    if (kinds.size() == 1)
      request.loss_targets[loss.get_or<std::string>("target", "")] = kinds.front();
  }
  data_ = make<DataProvider>("data");
  data_->open(request);
  rows_ = data_->ask<RowReader>();
  if (rows_ == nullptr) {
    throw DataError("the data \"" + name_in(slot) +
                    "\" can only be read in order; training needs rows that can be read at random");
  }
  spec_ = data_->spec();
  if (spec_.targets.empty())
    throw DataError("the data has no target: there is nothing to train for");
  if (request.task == Task::kAuto) {
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
  settle();
}

void Ingredients::recall_data(DataSpec spec) {
  spec_ = std::move(spec);
  settle();
}

void Ingredients::settle() {
  settle_losses();
  settle_metrics();
  settle_shards();
  runtime_.expect_usable(workflow_.resolved);  // what the data decided may be of other plugins
}

/// Puts what was chosen for the user where the document would have it, checked like the rest.
void Ingredients::settle_slot(const std::string& key, const nlohmann::json& value) {
  const Checked checked = check(value, workflow_schema().at("properties").at(key),
                                runtime_.schemas(), *workflow_.document, "/" + key);
  if (!checked.problems.empty())
    throw DocumentError(checked.problems);
  workflow_.resolved[key] = checked.value;
}

void Ingredients::settle_losses() {
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
    losses_.push_back(make_in<Loss>(slot, "loss"));
    term.loss = losses_.back().get();
    terms_.push_back(term);
  }
  expect_each_target_has_a_loss();
  expect_whole_batches();
}

/// The target a loss names, or the only one.
std::size_t Ingredients::target_of(const Config& slot) const {
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

void Ingredients::expect_each_target_has_a_loss() const {
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
void Ingredients::expect_whole_batches() const {
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
  }
}

void Ingredients::settle_metrics() {
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

std::string Ingredients::metric_prefix(const TargetSpec& target) const {
  return spec_.targets.size() > 1 ? target.name + "/" : std::string();
}

/// Never from the machine: the result depends on it.
void Ingredients::settle_shards() {
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
std::shared_ptr<Model> Ingredients::tried_model() const {
  constexpr std::int64_t kRows = 1024;
  if (rows_ == nullptr)
    return nullptr;
  const std::int64_t count = rows_->rows();
  std::vector<std::int64_t> some;
  for (std::int64_t i = 0; i < std::min(count, kRows); ++i)
    some.push_back(count <= kRows ? i : i * count / kRows);
  const TaskRandom random(0);
  try {
    const std::vector<std::unique_ptr<Transform>> transforms = make_transforms();
    std::vector<const Transform*> fitted;
    for (const auto& transform : transforms) {
      const engine::TransformedRows so_far(*rows_, fitted);
      transform->fit(so_far, some);
      fitted.push_back(transform.get());
    }
    return make_model(model_spec(engine::TransformedRows(*rows_, fitted).spec()));
  } catch (const Error&) {
    return nullptr;
  }
}

std::size_t Ingredients::shards() const {
  return workflow_.resolved.at("resources").at("shards").get<std::size_t>();
}

void Ingredients::make_plan() {
  const RowReader& rows = this->rows();
  SplitRequest request;
  request.rows = rows.rows();
  request.targets = rows.spec().targets;
  for (std::size_t target = 0; target < request.targets.size(); ++target)
    request.target_values.push_back(rows.targets(target));
  request.groups = rows.groups();
  request.timestamps = rows.timestamps();
  request.random = RandomStreams(workflow_.seed).part("validation", 0);
  plan_ = make<CrossValidator>("validation")->plan(request);
}

std::vector<std::unique_ptr<Transform>> Ingredients::make_transforms() const {
  return make_each<Transform>("transforms");
}

std::shared_ptr<Model> Ingredients::make_model(const ModelSpec& spec) const {
  return make<ModelProvider>("model")->create(spec);
}

std::optional<GivenWeights> Ingredients::given_weights() const {
  const Config slot = workflow_.slot("model");
  if (!slot.has("weights"))
    return std::nullopt;
  const Config weights = slot.child("weights");
  return GivenWeights{weights.get<std::string>("path"), weights.get<bool>("strict")};
}

std::unique_ptr<Optimizer> Ingredients::make_optimizer() const {
  return make<Optimizer>("optimizer");
}

std::vector<OptimizerGroup> Ingredients::make_optimizer_groups(const Model& model) const {
  std::vector<OptimizerGroup> groups;
  const Config slot = workflow_.slot("optimizer");
  if (!slot.has("groups"))
    return groups;
  std::vector<std::string> left;
  for (const auto& item : model.named_parameters())
    left.push_back(item.key());
  for (const Config& group : slot.children("groups")) {
    nlohmann::json parameters = component_config(slot, "optimizer").json();
    for (const auto& [key, value] : group.json().items()) {
      if (key != "parameters")
        parameters[key] = value;
    }
    groups.push_back({runtime_.registry().make<Optimizer>(
                          name_in(slot), Config(parameters, group.pointer(), group.places())),
                      {}});
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
      for (const auto& item : model.named_parameters())
        names += (names.empty() ? "" : ", ") + item.key();
      group.fail("parameters",
                 "this names no parameter that no group before it has; the model's are " + names);
    }
  }
  return groups;
}

std::unique_ptr<LearningRateSchedule> Ingredients::make_schedule() const {
  auto schedule = make<LearningRateSchedule>("schedule");
  const Config slot = workflow_.slot("schedule");
  if (!slot.has("warmup"))
    return schedule;
  return std::make_unique<WarmedUpSchedule>(std::move(schedule), slot.get<Duration>("warmup"));
}

TrainingPlan Ingredients::training_plan() const {
  const Config slot = workflow_.slot("training");
  TrainingPlan plan;
  plan.epochs = slot.get<std::int64_t>("epochs");
  plan.batch_size = slot.get<std::int64_t>("batch_size");
  plan.evaluation_batch_size = slot.get<std::int64_t>("evaluation_batch_size");
  plan.evaluate_every = slot.get<std::int64_t>("evaluate_every");
  plan.shuffle = slot.get<bool>("shuffle");
  plan.drop_last = slot.get<bool>("drop_last");
  if (slot.has("clip")) {
    const Config clip = slot.child("clip");
    plan.clipping = {clip.get_or<double>("norm", 0), clip.get_or<double>("value", 0)};
  }
  const Config checkpoint = slot.child("checkpoint");
  plan.checkpoint_every = checkpoint.get<Duration>("every");
  plan.keep_checkpoints = checkpoint.get<int>("keep");
  return plan;
}

std::unique_ptr<TrainingWorkflow> Ingredients::make_training() const {
  return make<TrainingWorkflow>("training");
}

std::unique_ptr<GradientStrategy> Ingredients::make_gradients() const {
  const Config slot = workflow_.slot("training");
  return slot.has("gradients") ? make_nested<GradientStrategy>(slot.child("gradients")) : nullptr;
}

std::vector<std::unique_ptr<TrainingCallback>> Ingredients::make_callbacks() const {
  std::vector<std::unique_ptr<TrainingCallback>> callbacks;
  const Config slot = workflow_.slot("training");
  for (const auto& [key, property] : slot_schema("training").at("properties").items()) {
    if (property.value("x-treadle-component", "") == "callback" && slot.has(key))
      callbacks.push_back(make_nested<TrainingCallback>(slot.child(key)));
  }
  for (const Config& callback : slot.children("callbacks"))
    callbacks.push_back(make_nested<TrainingCallback>(callback));
  return callbacks;
}

Metric Ingredients::started(std::unique_ptr<MetricComputer> metric, std::size_t target) const {
  const TargetSpec& spec = spec_.targets[target];
  metric->start(spec);
  return {std::move(metric), target, spec, metric_prefix(spec)};
}

/// Those a metric is computed for: the one it names, or all it works on.
std::vector<std::size_t> Ingredients::targets_of_metric(const Config& slot) const {
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

std::vector<Metric> Ingredients::make_metrics() const {
  std::vector<Metric> metrics;
  for (const Config& slot : slots("metrics")) {
    for (const std::size_t target : targets_of_metric(slot))
      metrics.push_back(started(make_in<MetricComputer>(slot, "metrics"), target));
  }
  return metrics;
}

std::vector<Metric> Ingredients::make_report_metrics() const {
  std::vector<Metric> metrics;
  const std::vector<std::string> known = runtime_.registry().names<MetricComputer>();
  for (std::size_t target = 0; target < spec_.targets.size(); ++target) {
    const char* const name = defaults_for(spec_.targets[target].kind).report_metric;
    if (name == nullptr || std::find(known.begin(), known.end(), name) == known.end())
      continue;
    try {
      metrics.push_back(started(runtime_.registry().make<MetricComputer>(name), target));
    } catch (const DataError&) {
      // Nobody asked for it: a table of 1500 classes is not to end a training.
    }
  }
  return metrics;
}

std::vector<TargetMetric> views(const std::vector<Metric>& metrics) {
  std::vector<TargetMetric> views;
  for (const Metric& metric : metrics)
    views.push_back(metric.view());
  return views;
}

std::string Ingredients::task() const {
  std::string text;
  for (const TargetSpec& target : spec_.targets) {
    const std::string_view task = defaults_for(target.kind).task;
    if (text.find(task) == std::string::npos)
      text += (text.empty() ? "" : ", ") + std::string(task);
  }
  return text;
}

std::vector<std::unique_ptr<RunObserver>> Ingredients::make_observers() const {
  return make_each<RunObserver>("observers");
}

ModelSpec Ingredients::model_spec(const DataSpec& transformed) const {
  for (const PortSpec& port : transformed.inputs) {
    for (const Column& column : port.columns) {
      if (column.may_be_missing) {
        throw DataError("column \"" + column.name +
                        "\" has missing values, and a model cannot learn from them; add "
                        "{\"use\": \"impute\"} to \"transforms\"");
      }
    }
  }
  return {transformed.inputs, Objective(terms_, transformed.targets).outputs(), transformed.targets,
          dtype_};
}

std::unique_ptr<DataProvider> make_data_for(const Runtime& runtime,
                                            const ResolvedWorkflow& workflow,
                                            const std::filesystem::path& data) {
  const Config slot = workflow.slot("data");
  const std::string name = name_in(slot);
  const nlohmann::json schema = runtime.registry().describe<DataProvider>(name).schema;
  nlohmann::json parameters = component_config(slot, "data").json();
  const std::string source = schema.value("x-treadle-source", "");
  if (source.empty()) {
    throw UsageError("the run's data is \"" + name +
                     "\", which does not come from a file; it cannot be given another one");
  }
  parameters[source] = std::filesystem::absolute(data).lexically_normal().string();
  return runtime.registry().make<DataProvider>(name, Config(std::move(parameters), slot.pointer()));
}

}  // namespace treadle::internal

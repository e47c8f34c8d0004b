#include "ingredients.h"

#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <functional>

#include <treadle/core/learning_rate_schedule.h>
#include <treadle/core/task_random.h>

namespace treadle::internal {
namespace {

struct TaskDefaults {
  TargetKind kind;
  const char* task;
  const char* loss;
  std::array<const char*, 2> metrics;
  const char* report_metric;
};
constexpr TaskDefaults kDefaults[] = {
    {TargetKind::kClasses,
     "classification",
     "cross_entropy",
     {"accuracy", nullptr},
     "confusion_matrix"},
    {TargetKind::kNumbers, "regression", "mse", {"rmse", "r2"}, "residuals"},
};

const TaskDefaults& defaults_for(TargetKind kind) {
  for (const TaskDefaults& entry : kDefaults) {
    if (entry.kind == kind)
      return entry;
  }
  throw DataError("the data has no target: there is nothing to train for");
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
                                         {"numbers", TargetKind::kNumbers}};
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
  nlohmann::json parameters = slot.json();
  parameters.erase("use");
  const nlohmann::json schema = workflow_schema();
  const nlohmann::json& slot_schema = schema.at("properties").at(std::string(slot_key));
  if (slot_schema.contains("properties")) {
    for (const auto& [own, ignored] : slot_schema.at("properties").items())
      parameters.erase(own);
  }
  return Config(std::move(parameters), slot.pointer(), slot.places());
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

template <typename Interface>
std::vector<std::unique_ptr<Interface>> Ingredients::make_each(std::string_view slot) const {
  std::vector<std::unique_ptr<Interface>> made;
  const nlohmann::json& list = workflow_.resolved.at(std::string(slot));
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Config config(list[i], "/" + std::string(slot) + "/" + std::to_string(i),
                        workflow_.document);
    made.push_back(runtime_.registry().make<Interface>(name_in(config), config));
  }
  return made;
}

void Ingredients::open_data() {
  const Config slot = workflow_.slot("data");
  OpenRequest request;
  request.task = value_of(kTasks, slot.get_or<std::string>("task", "auto"), Task::kAuto);
  request.dtype = dtype_;
  request.seed = RandomStreams(workflow_.seed).seed("data");
  if (workflow_.resolved.contains("loss")) {
    const nlohmann::json schema =
        runtime_.registry().describe<Loss>(name_in(workflow_.slot("loss"))).schema;
    request.loss_target =
        value_of(kTargets, schema.value("x-treadle-target", ""), TargetKind::kNone);
  }
  data_ = make<DataProvider>("data");
  data_->open(request);
  rows_ = data_->ask<RowReader>();
  if (rows_ == nullptr) {
    throw DataError("the data \"" + name_in(slot) +
                    "\" can only be read in order; training needs rows that can be read at random");
  }
  spec_ = data_->spec();
  if (request.task == Task::kAuto) {
    const TargetSpec& target = spec_.target;
    choices_.push_back(std::string("task: ") + defaults_for(target.kind).task + " of \"" +
                       target.name + "\"" +
                       (target.kind == TargetKind::kClasses
                            ? " (" + std::to_string(target.class_count()) + " classes)"
                            : std::string()));
  }
  settle();
}

void Ingredients::recall_data(DataSpec spec) {
  spec_ = std::move(spec);
  settle();
}

void Ingredients::settle() {
  settle_loss();
  settle_metrics();
  settle_shards();
  runtime_.expect_usable(workflow_.resolved);  // what the data decided may be of other plugins
}

void Ingredients::settle_loss() {
  const TaskDefaults& defaults = defaults_for(spec_.target.kind);
  if (!workflow_.resolved.contains("loss")) {
    const Checked loss =
        check({{"use", defaults.loss}}, workflow_schema().at("properties").at("loss"),
              runtime_.schemas(), *workflow_.document, "/loss");
    if (!loss.problems.empty())
      throw DocumentError(loss.problems);
    workflow_.resolved["loss"] = loss.value;
    choices_.push_back(std::string("loss: ") + defaults.loss);
  }
  loss_ = make<Loss>("loss");
}

void Ingredients::settle_metrics() {
  if (workflow_.resolved.contains("metrics"))
    return;
  nlohmann::json names = nlohmann::json::array();
  std::string text;
  for (const char* metric : defaults_for(spec_.target.kind).metrics) {
    if (metric == nullptr)
      continue;
    names.push_back({{"use", metric}});
    text += (text.empty() ? "" : ", ") + std::string(metric);
  }
  const Checked metrics = check(names, workflow_schema().at("properties").at("metrics"),
                                runtime_.schemas(), *workflow_.document, "/metrics");
  if (!metrics.problems.empty())
    throw DocumentError(metrics.problems);
  workflow_.resolved["metrics"] = metrics.value;
  choices_.push_back("metrics: " + text);
}

/// Never from the machine: the result depends on it.
void Ingredients::settle_shards() {
  constexpr std::int64_t kRowsAShard = 32;
  constexpr std::int64_t kMost = 8;
  nlohmann::json& shards = workflow_.resolved.at("resources").at("shards");
  if (shards.is_number())
    return;
  const std::int64_t rows = make_training()->batch_plan().training_batch;
  shards = std::clamp<std::int64_t>(rows / kRowsAShard, 1, kMost);
  choices_.push_back("shards: " + shards.dump());
}

std::size_t Ingredients::shards() const {
  return workflow_.resolved.at("resources").at("shards").get<std::size_t>();
}

void Ingredients::make_plan() {
  const RowReader& rows = this->rows();
  SplitRequest request;
  request.rows = rows.rows();
  request.target = rows.spec().target;
  request.targets = rows.targets();
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

std::unique_ptr<TrainingWorkflow> Ingredients::make_training() const {
  return make<TrainingWorkflow>("training");
}

std::vector<std::unique_ptr<MetricComputer>> Ingredients::make_metrics() const {
  auto metrics = make_each<MetricComputer>("metrics");
  for (const auto& metric : metrics)
    metric->start(spec_.target);
  return metrics;
}

std::vector<std::unique_ptr<MetricComputer>> Ingredients::make_report_metrics() const {
  std::vector<std::unique_ptr<MetricComputer>> metrics;
  const std::string name = defaults_for(spec_.target.kind).report_metric;
  const std::vector<std::string> known = runtime_.registry().names<MetricComputer>();
  if (std::find(known.begin(), known.end(), name) == known.end())
    return metrics;
  metrics.push_back(runtime_.registry().make<MetricComputer>(name));
  metrics.back()->start(spec_.target);
  return metrics;
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
  return {transformed.inputs, loss_->outputs_for(transformed.target), transformed.target.kind,
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

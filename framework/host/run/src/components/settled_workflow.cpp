#include "components/settled_workflow.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <treadle/engine/transformed_rows.h>
#include <treadle/tensor/task_random.h>

#include "components/document_components.h"
#include "components/document_losses.h"
#include "components/target_defaults.h"
#include "document/document_slots.h"
#include "document/shard_count.h"
#include "document/training_plan.h"
#include "resources/run_precision.h"

namespace treadle::internal {
namespace {

/// One pass over a document, from what the machine decides to what depends on all else.
class Settlement {
 public:
  Settlement(const Runtime& runtime, ResolvedWorkflow workflow, const Dataset& dataset)
      : runtime_(runtime),
        workflow_(std::move(workflow)),
        precision_(precision_of(workflow_)),
        dataset_(dataset),
        spec_(dataset.spec()) {}

  SettledWorkflow settled() {
    runtime_.expect_usable(workflow_.resolved);
    settle_device();
    settle_precision();
    if (dataset_.has_guessed_task())
      settle_task();
    settle_training();
    settle_losses();
    const DocumentLosses losses = make_losses(runtime_, workflow_, spec_.targets);
    expect_whole_batches(runtime_, workflow_, losses.terms);
    settle_metrics();
    settle_shards(losses);
    runtime_.expect_usable(workflow_.resolved);  // choices by the data may need other plugins
    return {std::move(workflow_), precision_, std::move(device_), std::move(choices_)};
  }

 private:
  void settle_device();
  void settle_precision();
  void settle_task();
  void settle_slot(const std::string& key, const nlohmann::json& value);
  void settle_training();
  void settle_losses();
  void settle_metrics();
  void settle_shards(const DocumentLosses& losses);
  std::shared_ptr<Model> tried_model() const;

  const Runtime& runtime_;
  ResolvedWorkflow workflow_;
  Precision precision_;
  RunDevice device_;
  const Dataset& dataset_;
  const DataSpec& spec_;
  std::vector<std::string> choices_;
};

void Settlement::settle_device() {
  device_ = find_device(runtime_, workflow_);
  nlohmann::json& device = workflow_.resolved.at("resources").at("device");
  if (device == "auto" && !device_.device().is_cpu())
    choices_.push_back("device: " + device_.name + " (" + device_.info.name + ")");
  for (const std::string& why : device_.unusable)
    choices_.push_back("device: without " + why);
  device = device_.name;
}

void Settlement::settle_precision() {
  expect_possible(precision_, device_, workflow_);
  if (const std::string why = why_slow(precision_, device_); !why.empty())
    choices_.push_back("precision: " + why);
}

void Settlement::settle_task() {
  const std::string task = task_of(spec_.targets);
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
void Settlement::settle_slot(const std::string& key, const nlohmann::json& value) {
  const Checked checked = check(value, workflow_schema().at("properties").at(key),
                                runtime_.schemas(), *workflow_.document, "/" + key);
  if (!checked.problems.empty())
    throw DocumentError(checked.problems);
  workflow_.resolved[key] = checked.value;
}

void Settlement::settle_losses() {
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
}

void Settlement::settle_metrics() {
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
      text += (text.empty() ? "" : ", ") + metric_prefix(spec_.targets, target) + metric;
    }
  }
  settle_slot("metrics", names);
  choices_.push_back("metrics: " + text);
}

/// So that the run's document has them written out.
void Settlement::settle_training() {
  const TrainingPlan plan = training_plan_of(runtime_, workflow_);
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

/// Never from the machine: the result depends on it.
void Settlement::settle_shards(const DocumentLosses& losses) {
  nlohmann::json& shards = workflow_.resolved.at("resources").at("shards");
  if (shards.is_number())
    return;
  ShardChoice choice{1, "the loss is computed over whole batches"};
  if (losses.are_additive()) {
    const std::shared_ptr<Model> model = tried_model();
    choice = model == nullptr
                 ? ShardChoice{1, "the work of a step is not known before the training"}
                 : choose_shards(*model, training_plan_of(runtime_, workflow_).batch_size);
  }
  shards = choice.shards;
  choices_.push_back("shards: " + shards.dump() + " (" + choice.reason + ")");
}

/// A model like those that will be trained, to see how large it is: for the data as transforms
/// leave it that have been fitted to a few rows. Null where that does not work; the training will
/// report why.
std::shared_ptr<Model> Settlement::tried_model() const {
  constexpr std::int64_t kRows = 1024;
  if (!dataset_.has_rows())
    return nullptr;
  const DocumentComponents made(runtime_, {workflow_, precision_, device_, choices_}, dataset_);
  const RowReader& rows = made.rows();
  const std::int64_t count = rows.rows();
  std::vector<std::int64_t> some;
  for (std::int64_t i = 0; i < std::min(count, kRows); ++i)
    some.push_back(count <= kRows ? i : i * count / kRows);
  const TaskRandom random(0);
  try {
    const std::vector<std::unique_ptr<Transform>> transforms = made.make_transforms();
    std::vector<const Transform*> fitted;
    for (const auto& transform : transforms) {
      const engine::TransformedRows so_far(rows, fitted, precision_.data());
      transform->fit(so_far, some);
      fitted.push_back(transform.get());
    }
    return made.make_model(made.model_spec(
        engine::BatchPreparation(rows.spec(), fitted, {.dtype = precision_.data()}).spec()));
  } catch (const Error&) {
    return nullptr;
  }
}

}  // namespace

SettledWorkflow settle(const Runtime& runtime, ResolvedWorkflow workflow, const Dataset& dataset) {
  return Settlement(runtime, std::move(workflow), dataset).settled();
}

}  // namespace treadle::internal

#include "trial.h"

#include <treadle/core/model_abilities.h>
#include <treadle/core/task_random.h>
#include <treadle/core/weights.h>
#include <treadle/engine/evaluation.h>
#include <treadle/engine/transformed_rows.h>

#include "target_units.h"

namespace treadle::internal {

std::string execution_choice(const Model& model) {
  const auto* chooses = dynamic_cast<const ChoosesExecution*>(&model);
  return chooses == nullptr ? std::string() : chooses->execution_choice();
}

Trial::Trial(const Ingredients& ingredients, TrialId id, TrialRows rows, Timeline* timeline)
    : ingredients_(ingredients),
      id_(std::move(id)),
      rows_(std::move(rows)),
      timeline_(timeline),
      random_(RandomStreams(ingredients.workflow().seed)
                  .part("trial", static_cast<std::uint64_t>(id_.index))) {}

Trial::~Trial() = default;

std::vector<const Transform*> Trial::transforms() const {
  std::vector<const Transform*> result;
  for (const auto& transform : transforms_)
    result.push_back(transform.get());
  return result;
}

void Trial::prepare(const StateDict* saved_preprocessing) {
  const Timeline::Span span(timeline_, Phase::kLoading);
  const RowReader& rows = ingredients_.rows();
  transforms_ = ingredients_.make_transforms();
  if (saved_preprocessing != nullptr) {
    load_transforms(transforms_, *saved_preprocessing);
  } else {
    std::vector<const Transform*> fitted;
    for (const auto& transform : transforms_) {
      const engine::TransformedRows so_far(rows, fitted);
      transform->fit(so_far, rows_.training);
      fitted.push_back(transform.get());
    }
  }
  const DataSpec transformed = engine::TransformedRows(rows, transforms()).spec();
  model_spec_ = ingredients_.model_spec(transformed);
  objective_.emplace(ingredients_.make_objective(transformed));
  {
    const TaskRandom random(random_.seed("init"));
    model_ = ingredients_.make_model(model_spec_);
    while (replicas_.size() + 1 < ingredients_.shards())
      replicas_.push_back(ingredients_.make_model(model_spec_));
  }
  if (const std::string choice = execution_choice(*model_); !choice.empty())
    notes_.push_back("execution: " + choice);
  if (saved_preprocessing == nullptr)
    load_given_weights();  // else they are in the checkpoint
  optimizer_ = ingredients_.make_optimizer();
  groups_ = ingredients_.make_optimizer_groups(*model_);
  schedule_ = ingredients_.make_schedule();
  workflow_ = ingredients_.make_training();
  metrics_ = ingredients_.make_metrics();
  report_metrics_ = ingredients_.make_report_metrics();

  const BatchPlan plan = workflow_->batch_plan();
  if (plan.drop_last && static_cast<std::int64_t>(rows_.training.size()) < plan.training_batch) {
    throw DataError("training.drop_last leaves nothing: there are " +
                    std::to_string(rows_.training.size()) + " training rows and a batch has " +
                    std::to_string(plan.training_batch));
  }
  const engine::PipelineOptions to_train{.batch_size = plan.training_batch,
                                         .shuffle = plan.shuffle,
                                         .drop_last = plan.drop_last,
                                         .training = true,
                                         .timeline = timeline_};
  training_ = std::make_unique<engine::BatchPipeline>(rows, rows_.training, transforms(), to_train,
                                                      random_);
  if (!rows_.validation.empty()) {
    const engine::PipelineOptions to_judge{
        .batch_size = engine::evaluation_batch(model_spec_.inputs, plan.training_batch,
                                               plan.evaluation_batch),
        .timeline = timeline_};
    validation_ = std::make_unique<engine::BatchPipeline>(rows, rows_.validation, transforms(),
                                                          to_judge, random_.part("validation", 0));
  }

  task_.model = model_.get();
  task_.objective = &*objective_;
  task_.optimizer = optimizer_.get();
  task_.schedule = schedule_.get();
  task_.training = training_.get();
  task_.validation = validation_.get();
  task_.metrics = views(metrics_);
  task_.transforms = transforms();
  task_.fixed_epochs = rows_.fixed_epochs;
  for (const OptimizerGroup& group : groups_)
    task_.groups.push_back({group.optimizer.get(), group.parameters});
  task_.timeline = timeline_;
  for (const auto& replica : replicas_)
    task_.replicas.push_back(replica.get());
}

void Trial::load_given_weights() {
  const std::optional<GivenWeights> given = ingredients_.given_weights();
  if (!given)
    return;
  if (given->is_strict) {
    load_weights(*model_, given->path);
    notes_.push_back("weights: from " + given->path.string());
    return;
  }
  const std::string left = load_matching_weights(*model_, given->path).text();
  notes_.push_back("weights: from " + given->path.string() +
                   (left.empty() ? "" : ", as far as they fit; " + left));
}

TrainingResult Trial::train(RunContext& context) {
  return workflow_->train(task_, context);
}

ValidationResult Trial::validate(RunContext& context) {
  TrainingTask task = task_;
  const std::vector<TargetMetric> extra = views(report_metrics_);
  task.metrics.insert(task.metrics.end(), extra.begin(), extra.end());
  return workflow_->validate(task, context);
}

bool Trial::transforms_targets() const {
  return change_targets(transforms(), ingredients_.data_spec().targets, ingredients_.dtype());
}

StateDict Trial::preprocessing() const {
  StateDict state;
  StateDict transforms;
  for (std::size_t i = 0; i < transforms_.size(); ++i) {
    transforms.put(std::to_string(i), transforms_[i]->state());
  }
  state.put("transforms", std::move(transforms));
  state.put("data", ingredients_.data().state());
  state.put("data_spec", to_json(ingredients_.rows().spec()));
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

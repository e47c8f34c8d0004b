#include <treadle/core/training_workflow.h>

#include <treadle/core/plugin_call.h>

namespace treadle {
namespace {

void expect_complete(const TrainingTask& task) {
  TREADLE_EXPECTS(
      task.model != nullptr && task.objective != nullptr && task.optimizer != nullptr &&
          task.schedule != nullptr && task.training != nullptr,
      "a training task needs a model, a loss, an optimizer, a schedule and training rows");
}

}  // namespace

BatchPlan TrainingWorkflow::batch_plan() const {
  return call_plugin(*this, "batch_plan", [&] { return do_batch_plan(); });
}

std::int64_t TrainingWorkflow::planned_epochs() const {
  return call_plugin(*this, "planned_epochs", [&] { return do_planned_epochs(); });
}

TrainingResult TrainingWorkflow::train(TrainingTask& task, RunContext& context) {
  expect_complete(task);
  return call_plugin(*this, "train", [&] { return do_train(task, context); });
}

ValidationResult TrainingWorkflow::validate(TrainingTask& task, RunContext& context) {
  expect_complete(task);
  TREADLE_EXPECTS(task.validation != nullptr, "validate() needs validation rows");
  return call_plugin(*this, "validate", [&] { return do_validate(task, context); });
}

}  // namespace treadle

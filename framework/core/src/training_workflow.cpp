#include <treadle/core/training_workflow.h>

namespace treadle {
namespace {

void expect_complete(const TrainingTask& task) {
  TREADLE_EXPECTS(task.model != nullptr && task.loss != nullptr && task.optimizer != nullptr &&
                      task.schedule != nullptr && task.training != nullptr,
                  "a training task needs a model, a loss, an optimizer, a schedule and training rows");
}

}  // namespace

TrainingResult TrainingWorkflow::train(TrainingTask& task, RunContext& context) {
  expect_complete(task);
  return do_train(task, context);
}

ValidationResult TrainingWorkflow::validate(TrainingTask& task, RunContext& context) {
  expect_complete(task);
  TREADLE_EXPECTS(task.validation != nullptr, "validate() needs validation rows");
  return do_validate(task, context);
}

}  // namespace treadle

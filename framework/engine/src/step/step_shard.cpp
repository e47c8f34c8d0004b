#include "step/step_shard.h"

#include <c10/core/GradMode.h>

#include <treadle/base/error.h>

namespace treadle::engine {

StepShard::StepShard(const GradientTask& task, const GradientStrategy* strategy,
                     const Precision& precision)
    : task_(task), strategy_(strategy), context_({}, precision) {
  context_.set_log(&logged);
}

void StepShard::become_repeatable(c10::Device device) {
  generators.emplace(device);
  context_.set_log(&logged_by_step);
}

void StepShard::seed(std::uint64_t seed) {
  seed_ = seed;
  if (generators)
    generators->seed(seed);
}

void StepShard::follow(Model& model) {
  if (modules_.empty())
    pair_up(model);
  for (const auto& [its, mine] : modules_) {
    if (mine->is_training() != its->is_training())
      mine->train(its->is_training());
  }
  if (!has_buffers_)
    return;
  // Asked for anew: a module may give itself another tensor.
  const at::NoGradGuard no_gradients;
  const std::vector<at::Tensor> its_buffers = model.buffers();
  std::vector<at::Tensor> my_buffers = task_.model->buffers();
  for (std::size_t i = 0; i < my_buffers.size(); ++i)
    my_buffers[i].copy_(its_buffers[i]);
}

void StepShard::pair_up(Model& model) {
  // A module sets the mode of those inside it, and comes before them.
  const auto its_modules = model.modules();
  const auto my_modules = task_.model->modules();
  const std::size_t buffers = model.buffers().size();
  if (its_modules.size() != my_modules.size() || buffers != task_.model->buffers().size()) {
    throw TrainingError(
        "a replica of the model has other layers or buffers than the model; a model provider must "
        "create the same structure every time");
  }
  for (std::size_t i = 0; i < its_modules.size(); ++i)
    modules_.emplace_back(its_modules[i], my_modules[i]);
  has_buffers_ = buffers > 0;
}

void StepShard::set_task(const LossFunction* loss, const Objective::Scales* scales) {
  task_.loss = loss;
  task_.scales = scales;
}

void StepShard::run_in(ParameterArena& arena, const Batch& batch) {
  arena.zero_gradients();
  loss = {};
  if (batch.size() > 0)
    run(batch);
  arena.collect();
}

void StepShard::run(const Batch& batch) {
  const at::AutoGradMode gradients(true);
  const TaskRandom random = generators ? TaskRandom(*generators) : TaskRandom(seed_);
  logged.weigh_by(batch.size());
  logged_by_step.weigh_by(batch.size());
  loss = {strategy_ != nullptr ? strategy_->add_gradients(task_, batch, context_)
                               : back_propagate(task_, batch, context_),
          batch.size()};
}

}  // namespace treadle::engine

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <torch/nn/module.h>

#include <treadle/core/model/logged_values.h>
#include <treadle/core/precision/float8_scales.h>
#include <treadle/core/training/gradient_strategy.h>
#include <treadle/core/training/parameter_arena.h>
#include <treadle/tensor/task_random.h>

#include "step/step_numbers.h"

namespace treadle::engine {

/// The state and the results of one shard of a training's steps. One thread at a time.
class StepShard {
 public:
  StepShard(const GradientTask& task, const GradientStrategy* strategy, const Precision& precision);

  /// From now on a step can be recorded: it draws from the same generators as others, and logs for
  /// itself, into `logged_by_step`.
  void become_repeatable(c10::Device device);

  // Before a step.
  void seed(std::uint64_t seed);
  /// Of a replica: modes and buffers of the model.
  void follow(Model& model);
  /// From now on steps minimize this; null: the objective.
  void set_task(const LossFunction* loss, const Objective::Scales* scales);

  /// Forward and backward of the rows of the shard, with the gradients in `arena`. Without rows it
  /// has no part in the step.
  void run_in(ParameterArena& arena, const Batch& batch);

  StateDict& model_state() { return context_.state(); }
  /// Null where there are none to keep.
  Float8Scales* float8_scales() const { return task_.model->float8_scales().get(); }

  ShardLoss loss;  ///< of the step
  LoggedValues logged;
  LoggedValues logged_by_step;               ///< not yet in `logged`
  std::optional<TaskGenerators> generators;  ///< nothing: steps are not repeated

 private:
  void run(const Batch& batch);
  void pair_up(Model& model);

  GradientTask task_;
  const GradientStrategy* const strategy_;
  ForwardContext context_;
  std::uint64_t seed_ = 0;
  std::vector<std::pair<std::shared_ptr<torch::nn::Module>, std::shared_ptr<torch::nn::Module>>>
      modules_;  // the model's, the replica's
  bool has_buffers_ = false;
};

}  // namespace treadle::engine

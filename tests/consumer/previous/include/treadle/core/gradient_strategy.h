#pragma once

#include <cstddef>
#include <string_view>

#include <treadle/base/component.h>
#include <treadle/core/batch.h>
#include <treadle/core/loss.h>
#include <treadle/core/model.h>
#include <treadle/core/timeline.h>

namespace treadle {

/// Whose gradients are wanted. Everything outlives the call.
struct GradientTask {
  Model* model = nullptr;
  const Loss* loss = nullptr;
  std::size_t outputs = 1;       ///< output ports of the model
  Timeline* timeline = nullptr;  ///< where forward and backward are timed; null: nowhere
};

/// How a batch becomes gradients: back-propagation, in one piece or in several, through all of time
/// or through one step of it.
///
/// One object serves a training; with shards it is called from several threads at once, each with a
/// replica of the model of its own.
class GradientStrategy : public Component {
 public:
  static constexpr std::string_view kInterface = "treadle.gradients/1";

  ~GradientStrategy() override;

  /// Adds the gradients of the loss' *sum* over `batch` to those of the model's parameters, and
  /// returns the loss' terms without their graph. What the model carries in `context` comes out
  /// detached: a next batch's gradients end there.
  LossTerms add_gradients(const GradientTask& task, const Batch& batch,
                          ForwardContext& context) const;

 private:
  virtual LossTerms do_add_gradients(const GradientTask& task, const Batch& batch,
                                     ForwardContext& context) const = 0;
};

/// Forward, loss, backward: what strategies are made of, and what a training without a strategy
/// does.
LossTerms back_propagate(const GradientTask& task, const Batch& batch, ForwardContext& context);

/// While one lives, gradients on this thread go back through one step of time only: a recurrent
/// layer that asks one_step_gradients() detaches its state before every step. Layers without a
/// memory need not ask. Scopes nest.
///
/// Source: truncated back-propagation through time (Williams & Peng 1990) with a horizon of 1.
class OneStepGradients {
 public:
  OneStepGradients();
  ~OneStepGradients();
  OneStepGradients(const OneStepGradients&) = delete;
  OneStepGradients& operator=(const OneStepGradients&) = delete;

 private:
  bool before_;
};

bool one_step_gradients();

}  // namespace treadle

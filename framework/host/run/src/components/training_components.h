#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <treadle/core/data/sampler.h>
#include <treadle/core/model/model.h>
#include <treadle/core/training/gradient_strategy.h>
#include <treadle/core/training/learning_rate_schedule.h>
#include <treadle/core/training/optimizer.h>
#include <treadle/core/training/training_callback.h>
#include <treadle/core/training/training_workflow.h>
#include <treadle/host/catalog/workflow_document.h>
#include <treadle/host/run/runtime.h>

/// The components of a training, by its document: fresh objects, one set a training.
namespace treadle::internal {

/// A group of the document's optimizer.
struct OptimizerGroup {
  std::unique_ptr<Optimizer> optimizer;
  std::vector<std::string> parameters;                       ///< names
  std::unique_ptr<LearningRateSchedule> schedule = nullptr;  ///< null: it has none of its own
};

/// A file that a training starts from, instead of random weights: all of it, or what is below the
/// node `from`, for the model's node `to`.
struct GivenWeights {
  std::filesystem::path path;
  bool is_strict = true;
  std::string from = {};
  std::string to = {};
};

/// One that does nothing where the document names none.
std::unique_ptr<Optimizer> make_optimizer(const Runtime& runtime, const ResolvedWorkflow& workflow);
/// The parameters that the document gives an optimizer of their own, with it.
std::vector<OptimizerGroup> make_optimizer_groups(const Runtime& runtime,
                                                  const ResolvedWorkflow& workflow,
                                                  const Model& model);
std::unique_ptr<LearningRateSchedule> make_schedule(const Runtime& runtime,
                                                    const ResolvedWorkflow& workflow);
std::unique_ptr<TrainingWorkflow> make_training(const Runtime& runtime,
                                                const ResolvedWorkflow& workflow);
/// Null when the document names none.
std::unique_ptr<Sampler> make_sampler(const Runtime& runtime, const ResolvedWorkflow& workflow);
/// Null when the document names none.
std::unique_ptr<GradientStrategy> make_gradients(const Runtime& runtime,
                                                 const ResolvedWorkflow& workflow);
/// In the order in which they are called.
std::vector<std::unique_ptr<TrainingCallback>> make_callbacks(const Runtime& runtime,
                                                              const ResolvedWorkflow& workflow);
/// The document's; none when it names none.
std::vector<GivenWeights> given_weights(const ResolvedWorkflow& workflow);

}  // namespace treadle::internal

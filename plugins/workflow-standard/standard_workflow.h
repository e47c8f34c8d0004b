#pragma once

#include <memory>
#include <optional>
#include <string>

#include <treadle/base/duration.h>
#include <treadle/core/training_workflow.h>
#include <treadle/engine/training_step.h>

#include "averaging.h"
#include "decisions.h"
#include "early_stopping.h"

namespace treadle {

/// The training loop most people want: epochs over shuffled batches, judged on the validation rows
/// after each, optionally stopped early, ending with the last or the best weights.
class StandardWorkflow final : public TrainingWorkflow {
 public:
  StandardWorkflow(const Config& config, const ComponentContext& context);

 private:
  BatchPlan do_batch_plan() const override { return batches_; }
  std::int64_t do_planned_epochs() const override { return epochs_; }
  TrainingResult do_train(TrainingTask& task, RunContext& context) override;
  ValidationResult do_validate(TrainingTask& task, RunContext& context) override;

  class Training;

  /// Fails when a condition names a number that the training will not have.
  void expect_known_trends(const TrainingTask& task) const;

  /// Fails when a metric that the configuration names is none of those the validation gives.
  void expect_watched_metrics(const TrainingTask& task) const;

  struct Stopping {
    std::string metric;
    Duration patience;
    double min_delta = 0;
    double alpha = 1;
  };

  Config config_;
  BatchPlan batches_;
  std::int64_t epochs_ = 0;
  std::optional<Stopping> stopping_;
  DecisionPlan decisions_;
  std::string keep_best_;  // a metric's name; empty: keep the last weights
  engine::Clipping clipping_;
  std::unique_ptr<GradientStrategy> gradients_;  // null: back-propagation in one piece
  std::optional<Averaging> averaging_;
  Duration checkpoint_every_;
  int keep_checkpoints_ = 2;
};

}  // namespace treadle

#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <treadle/core/training/training_workflow.h>
#include <treadle/engine/training_step.h>
#include <treadle/host/run/runtime.h>

namespace treadle::internal {

/// The settings of the document's `training`, and the needs of its loop.
struct TrainingPlan {
  std::optional<std::int64_t> epochs;           ///< nothing: until something stops the training
  std::optional<std::int64_t> steps_per_epoch;  ///< nothing: a pass over the rows
  std::optional<std::int64_t> max_steps;
  std::int64_t batch_size = 32;
  std::int64_t evaluation_batch_size = 1024;  ///< at most: fewer rows where they are large
  std::int64_t evaluate_every = 1;            ///< epochs
  bool shuffle = true;
  bool drop_last = false;
  bool drop_single = false;  ///< a last batch of which a shard would have one row alone
  engine::Clipping clipping = {};
  Duration checkpoint_every;
  int keep_checkpoints = 2;
  /// LoopNeeds::rows_per_epoch: then one pass, in the order of the data.
  std::optional<std::int64_t> rows_per_epoch;
  std::vector<LoopNeeds::Part> parts;  ///< of the training rows, set aside for the loop
  /// Rows of a stream that are in memory at once.
  std::int64_t shuffle_buffer = 8192;
};

TrainingPlan training_plan_of(const Runtime& runtime, const ResolvedWorkflow& workflow);

}  // namespace treadle::internal

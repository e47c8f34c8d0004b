#pragma once

#include <cstdint>
#include <optional>

#include <treadle/engine/training_step.h>
#include <treadle/host/run/runtime.h>

namespace treadle::internal {

/// What the document's `training` asks for, whichever its loop is.
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
  /// Rows of a window, which is an epoch, where each batch is tested before it is trained on.
  /// Nothing validates then, and there is one pass.
  std::optional<std::int64_t> test_window;
  /// Of the training rows, for the structure of the model.
  std::optional<double> structure_fraction;
  /// Rows of a stream that are in memory at once.
  std::int64_t shuffle_buffer = 8192;
};

TrainingPlan training_plan_of(const ResolvedWorkflow& workflow);

}  // namespace treadle::internal

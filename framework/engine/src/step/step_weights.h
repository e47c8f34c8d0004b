#pragma once

#include <cstdint>
#include <exception>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/core/model/model.h>
#include <treadle/core/training/objective.h>
#include <treadle/engine/shard_group.h>
#include <treadle/engine/step_rows.h>

namespace treadle::engine {

/// What the shards of a step must know of each other before backward, where a loss has several
/// terms: how much the rows of the whole step weigh.
struct StepWeights {
  std::vector<at::Tensor> of_terms;  ///< float64 [], on the device
  std::int64_t positions = 0;        ///< see Objective::positions()
};

/// Adds those of the shards in their order, in float64, wherever the shards are: one exchange where
/// there is a group, in which every process takes part. What is thrown here is in `error` and no
/// reason to stay away.
StepWeights weights_of(const Objective& objective, const StepRows& rows, ShardGroup* group,
                       c10::Device device, std::exception_ptr& error);

/// Whether a model may add losses of its own to a step: it declares what it logs, or may log
/// anything.
bool may_add_losses(const Model& model);

}  // namespace treadle::engine

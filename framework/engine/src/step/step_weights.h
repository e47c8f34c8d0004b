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

/// How much the rows of the whole step weigh: its shards need it before backward, where a loss has
/// several terms.
struct StepWeights {
  std::vector<at::Tensor> of_terms;  ///< float64 [], on the device
  std::int64_t positions = 0;        ///< see Objective::positions()
};

/// Adds those of the shards in their order, in float64, wherever the shards are: of a group
/// one exchange, in which every process takes part. One that throws something still takes part, and
/// returns it in `error`.
StepWeights weights_of(const Objective& objective, const StepRows& rows, ShardGroup* group,
                       c10::Device device, std::exception_ptr& error);

/// Whether a model may add losses of its own to a step: it declares its logged values, or may log
/// any.
bool may_add_losses(const Model& model);

}  // namespace treadle::engine

#pragma once

#include <cstdint>
#include <string_view>

#include <treadle/graph/part.h>

/// What a multilayer perceptron is made of. A plan knows all of it.
namespace treadle::models {

/// x Wᵀ + b with the initial bits of torch.nn.Linear. "weight" [units, in], "bias" [units].
graph::Part dense(std::int64_t units);
/// Over the batch. "weight", "bias", buffers "running_mean", "running_var".
graph::Part batch_norm();
/// Over each row. "weight", "bias".
graph::Part layer_norm();
graph::Part dropout(double rate);
/// By its name in the schema of mlp.
graph::Part activation(std::string_view name);
/// Columns `begin` to `begin + width`.
graph::Part columns(std::int64_t begin, std::int64_t width);

}  // namespace treadle::models

#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include <treadle/core/components/state_dict.h>

/// What layers over sequences keep from call to call, so that each call continues the positions of
/// those before: a network can then write a text position by position.
namespace treadle::layers {

/// How many positions the calls before had; 0 at first.
std::int64_t cached_positions(const StateDict& state);
void put_cached_positions(StateDict& state, std::int64_t positions);

/// The first `rows` of what the call before left for each row. Throws a DataError where there are
/// fewer.
at::Tensor cached_rows(const at::Tensor& cache, std::int64_t rows);

}  // namespace treadle::layers

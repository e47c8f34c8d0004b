#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

/// How well one column alone predicts a target on rows that chose nothing: the halves of the rows,
/// drawn with a fixed seed, predict each other.
namespace treadle::describe::internal {

/// For each row the mean of `targets` over the rows of the other half with the same code; NaN where
/// it has none. `codes`: int64 [n], from 0 on; `targets`: float64 [n, T]. Returns [n, T].
at::Tensor means_by_code(const at::Tensor& codes, const at::Tensor& targets);

/// For each row the mean of `targets` over the rows of the other half that have the value nearest
/// to its own. `values`: float64 [n], finite; at least two rows.
at::Tensor means_of_nearest(const at::Tensor& values, const at::Tensor& targets);

/// The mean recall of classes, of those with at least `fewest` rows, where the most probable class
/// is predicted; a row without a prediction is wrong. `classes`: int64 [n]; `means`: [n, C].
double balanced_accuracy(const at::Tensor& classes, const at::Tensor& means, std::int64_t fewest);

/// The share of the target's variance that is predicted; the mean where a row has no prediction.
/// [n] each.
double r_squared(const at::Tensor& targets, const at::Tensor& means);

}  // namespace treadle::describe::internal

#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/core/data/batch.h>
#include <treadle/core/data/data_spec.h>

namespace treadle::losses {

/// {positions..., width}: the shape of an output of `width` for each position of `target`.
std::vector<std::int64_t> shape_per_position(const TargetSpec& target, std::int64_t width);

/// An output beside its target with all positions in one dimension, N = rows * positions.
///
/// Positions of weight 0 hold zeros in both: whatever a model computes for padding, NaN included,
/// then changes neither a loss nor a gradient.
struct Positions {
  /// `output` is [B, positions..., width]; `target` as it comes.
  Positions(const at::Tensor& output, const TargetBatch& target);

  at::Tensor output;   // [N, width]
  at::Tensor target;   // [N] for classes, else [N, width]
  at::Tensor weights;  // [N]; undefined: 1 each
};

/// The number of values that count: the weights' sum, or the number of positions, times `width`.
at::Tensor weight_of_values(const TargetBatch& target, std::int64_t width);

}  // namespace treadle::losses

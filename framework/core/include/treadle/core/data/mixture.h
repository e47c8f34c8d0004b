#pragma once

#include <cstddef>
#include <vector>

#include <ATen/core/Tensor.h>

namespace treadle {

/// Rows that a transform has mixed with other rows of their batch, as MixUp and CutMix do. The loss
/// of a mixed row is that of both rows it is made of:
///
///     share * loss(its own targets) + (1 - share) * loss(its partner's targets)
///
/// where each of the two also keeps its own weights. Metrics compare with a row's own targets.
///
/// A transform sets `shares` and `partners`, and leaves targets alone, so that transforms behind it
/// may change them. The partners' targets are looked up behind the last transform.
struct Mixture {
  at::Tensor shares;    ///< [B], numbers from 0 to 1; undefined: no row is mixed
  at::Tensor partners;  ///< int64 [B], places in the batch; undefined once they are looked up
  /// Targets that are mixed as their inputs are, such as masks of patches: both rows have them.
  std::vector<std::size_t> mixed_targets = {};

  /// Of the partners: as Batch::targets, Batch::position_weights and Batch::weights.
  std::vector<at::Tensor> targets = {};
  std::vector<at::Tensor> position_weights = {};
  at::Tensor weights = {};

  bool is_empty() const { return !shares.defined(); }
};

}  // namespace treadle

#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

namespace treadle {

/// Some rows of data, ready for a model. A bundle of tensor handles: copying it copies no data.
///
/// A stage that fills a Batch again and again (a pipeline slot) writes into the tensors already
/// there when they have the right size, so a warm pipeline does not allocate.
struct Batch {
  /// One tensor per port of DataSpec::inputs, same order: [B, port.shape...], the run's dtype.
  std::vector<at::Tensor> inputs;
  /// Classes: int64 [B]. Numbers: the run's dtype [B, width]. Undefined when there is no target.
  at::Tensor targets;
  /// The targets as the data gave them, before any transform: what metrics judge by. The same
  /// handle as `targets` when no transform changes targets; a transform that does gives `targets` a
  /// new tensor.
  at::Tensor original_targets;
  /// How much each row counts: the run's dtype [B], >= 0. Undefined means 1 each.
  at::Tensor weights;
  /// Where each row came from: int64 [B], always on the CPU.
  at::Tensor rows;

  std::int64_t size() const { return rows.defined() ? rows.size(0) : 0; }

  /// Rows [begin, begin + count), as views.
  Batch slice(std::int64_t begin, std::int64_t count) const;
};

}  // namespace treadle

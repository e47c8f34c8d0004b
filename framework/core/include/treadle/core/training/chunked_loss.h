#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/core/data/batch.h>
#include <treadle/core/model/deferred_output.h>
#include <treadle/core/training/loss.h>

namespace treadle {

/// A loss that can be asked for in chunks of positions, so that a training step never holds the
/// whole of a DeferredOutput.
///
/// An optional ability of a Loss (`loss.ask<ChunksOutputs>()`) with one output, which is a sum over
/// positions: forward() is then called with some of them at a time, each as a row.
class ChunksOutputs {
 public:
  static constexpr std::string_view kInterface = "treadle.chunks-outputs/0";

  virtual ~ChunksOutputs();
  /// How many; 0: the output is computed as a whole.
  virtual std::int64_t num_output_chunks() const = 0;
};

/// The loss of an output that is deferred, in `chunks` of nearly equal numbers of positions. Equals
/// `loss.forward()` of the whole output up to the order of sums.
///
/// Where gradients are recorded, those of the features and of the head's parameters are computed
/// here, chunk by chunk, and only scaled in backward, so that no output is computed twice. Backward
/// then adds the latter to grad() directly. No gradients of gradients.
/// Source: the fused linear cross-entropy of Liger Kernel (Hsu et al., 2024).
LossTerms chunked_forward(const Loss& loss, const DeferredOutput& output, const TargetBatch& target,
                          std::int64_t chunks);

}  // namespace treadle

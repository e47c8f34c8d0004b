#pragma once

#include <ATen/core/Tensor.h>

#include <treadle/core/training/training_session.h>

#include "ridge.h"

namespace treadle {

/// The linear layer at the end of a model, and what some positions of a batch give it.
struct LastLayer {
  /// Computed in eval mode and without gradients. Targets are the numbers of the target as
  /// transforms left them; of classes, 1 for the one that is right and 0 for the others. Positions
  /// of weight 0 are left out.
  LayerRows rows;
  at::Tensor weight;  ///< the model's own: [width, in]
  at::Tensor bias;    ///< the same: [width]; undefined: it has none
};

/// Of the rows of a batch. Throws a DataError where the model does not end with such a layer, as
/// wide as the target, or where there is more than one loss.
LastLayer last_layer(TrainingSession& session, const Batch& batch);

}  // namespace treadle

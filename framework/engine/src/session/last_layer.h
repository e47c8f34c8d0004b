#pragma once

#include <stop_token>

#include <ATen/core/Tensor.h>

#include <treadle/core/data/batch.h>
#include <treadle/core/model/model.h>
#include <treadle/core/precision/precision.h>
#include <treadle/core/training/objective.h>
#include <treadle/core/training/solves_last_layer.h>

namespace treadle::engine {

/// The linear layer at the end of a model, and what it is given. Tensors are the model's own.
struct LastLayer {
  LastLayerRows rows;
  at::Tensor weight;
  at::Tensor bias;  ///< undefined: it has none
};

/// Of the rows of a batch, on the model's device. Throws a DataError where the model does not end
/// with such a layer, or where there is more than one loss.
LastLayer last_layer(Model& model, const Objective& objective, const Batch& batch,
                     const Precision& precision, std::stop_token stop);

}  // namespace treadle::engine

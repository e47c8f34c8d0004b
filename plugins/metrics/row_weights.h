#pragma once

#include <ATen/core/Tensor.h>

#include <treadle/core/batch.h>

namespace treadle::metrics {

/// The batch's weights, float64 [rows]; undefined where each row counts once.
inline at::Tensor wide_weights(const Batch& batch) {
  return batch.weights.defined() ? batch.weights.to(at::kDouble) : at::Tensor();
}

}  // namespace treadle::metrics

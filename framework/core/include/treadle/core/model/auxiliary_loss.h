#pragma once

#include <string>

#include <ATen/core/Tensor.h>

namespace treadle {

/// A term that a model added to the loss of a batch (ForwardContext::add_loss).
struct AuxiliaryLoss {
  std::string name;
  at::Tensor sum;  ///< over rows, 0-dim
};

}  // namespace treadle

#pragma once

#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

namespace treadle {

/// An output of a model that is not computed yet: `head` makes it of `features`. For outputs that
/// are much wider than what they are computed from, such as the logits of a large vocabulary.
struct DeferredOutput {
  at::Tensor features;  ///< [B, positions..., in], differentiable
  /// [n, in] to [n, width], each position by itself. Called for some positions at a time, in the
  /// run's precision, on the thread of the forward.
  std::function<at::Tensor(const at::Tensor& features)> head;
  std::vector<at::Tensor> parameters;  ///< of the head, each once
};

}  // namespace treadle

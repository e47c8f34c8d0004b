#pragma once

#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

namespace torch::nn {
class Module;
}

namespace treadle {

/// A part of a forward: some tensors become others. Called again during backward, so it may not
/// depend on anything that changes in between, and what it refers to must live until then.
using ForwardSegment =
    std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>& inputs)>;

/// `segment(inputs)`, but what lies between inputs and outputs is not kept for backward: it is
/// computed once more there. A forward more for the memory of the segment's inputs alone.
///
/// Gradients are the true ones, those of `owner`'s parameters included; the segment uses no others.
/// Random operators draw the same numbers both times; `owner`'s buffers (running statistics) change
/// once. Where no gradients are recorded it is a plain call. Gradients of gradients are refused.
/// Source: Chen et al., "Training Deep Nets with Sublinear Memory Cost" (2016).
std::vector<at::Tensor> recomputed(torch::nn::Module& owner, ForwardSegment segment,
                                   const std::vector<at::Tensor>& inputs);

}  // namespace treadle

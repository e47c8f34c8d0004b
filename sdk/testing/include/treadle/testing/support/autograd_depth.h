#pragma once

#include <cstddef>

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function.h>

namespace treadle::testing {

/// The longest way from a result back to what it was computed from, in nodes of autograd's graph; 0
/// where nothing was recorded. Grows with the length of a sequence where a state is carried from
/// step to step, and only there.
std::size_t autograd_depth(const at::Tensor& result);

}  // namespace treadle::testing

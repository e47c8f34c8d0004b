#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace treadle::softmax {

struct LinearMap {
  at::Tensor weight;  // [out, in]
  at::Tensor bias;    // [out]
};

/// With the initial values of torch.nn.Linear, drawn from the task's stream.
LinearMap initial_linear(std::int64_t in, std::int64_t out, c10::ScalarType dtype);

}  // namespace treadle::softmax

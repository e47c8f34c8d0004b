#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace treadle::forecasting {

/// [out, in], or [out], uniform within ±1 / √in as torch.nn.Linear begins; drawn from the task's
/// stream.
at::Tensor linear_weight(std::int64_t out, std::int64_t in, c10::ScalarType dtype);
at::Tensor linear_bias(std::int64_t out, std::int64_t in, c10::ScalarType dtype);

}  // namespace treadle::forecasting

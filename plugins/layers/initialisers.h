#pragma once

#include <cstdint>
#include <string_view>

#include <ATen/core/Tensor.h>

namespace treadle::layers {

/// How the weights of a linear map or a convolution begin, and its bias. Draws from the task's
/// stream.
///
/// Fans are those of torch.nn.init: of [out, in, …] in · … and out · ….
struct Initialiser {
  std::string_view name;
  void (*weight)(at::Tensor& weight);
  /// `fan_in` is the weight's.
  void (*bias)(at::Tensor& bias, std::int64_t fan_in);
};

/// Throws ContractViolation for a name the schemas do not list.
const Initialiser& initialiser(std::string_view name);

/// Both, without gradients. `bias` may be undefined.
void initialise(const Initialiser& initialiser, at::Tensor& weight, at::Tensor& bias);

}  // namespace treadle::layers

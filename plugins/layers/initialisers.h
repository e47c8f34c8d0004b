#pragma once

#include <cstdint>
#include <string_view>

#include <ATen/core/Tensor.h>

#include <treadle/base/config.h>

namespace treadle::layers {

/// How the weights of a linear map or a convolution begin, and its bias. Draws from the task's
/// stream.
///
/// Fans are those of torch.nn.init: of [out, in, …] in · … and out · ….
struct Initialiser {
  std::string_view name;
  /// `std` is of "normal", N(0, std²), alone.
  void (*weight)(at::Tensor& weight, double std);
  /// `fan_in` is the weight's.
  void (*bias)(at::Tensor& bias, std::int64_t fan_in);
  double std = 0.02;
};

/// By "init" and, of "normal", "init_std". Throws ContractViolation for a name the schemas do not
/// list, and DocumentError for a standard deviation without effect.
Initialiser initialiser_of(const Config& config);

/// The same, or that of the maps whose outputs are added to a residual stream: "residual_init_std".
Initialiser residual_initialiser_of(const Config& config);

/// Both, without gradients. `bias` may be undefined.
void initialise(const Initialiser& initialiser, at::Tensor& weight, at::Tensor& bias);

}  // namespace treadle::layers

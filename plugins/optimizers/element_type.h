#pragma once

#include <algorithm>
#include <limits>
#include <string>

#include <treadle/base/error.h>
#include <treadle/core/training/optimizer.h>

namespace treadle::optimizers {

/// Calls `action` with a value of the parameters' element type, float or double.
template <typename Action>
void with_element_type(const HostParameters& host, Action&& action) {
  switch (host.dtype()) {
    case at::kFloat:
      return action(float{});
    case at::kDouble:
      return action(double{});
    default:
      throw ContractViolation("optimizers update float32 or float64, not " +
                              std::string(c10::toString(host.dtype())));
  }
}

/// A number above 0 as a T that is above 0, too, also where denormals are flushed: 0 divided by it
/// is 0.
template <typename T>
T above_zero(double number) {
  return std::max(static_cast<T>(number), std::numeric_limits<T>::min());
}

/// The same for tensors of that dtype.
inline double above_zero(double number, at::ScalarType dtype) {
  return dtype == at::kDouble ? above_zero<double>(number) : above_zero<float>(number);
}

}  // namespace treadle::optimizers

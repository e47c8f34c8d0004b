#include "linear_weights.h"

#include <cmath>

#include <ATen/ops/empty.h>

namespace treadle::forecasting {
namespace {

at::Tensor within(std::int64_t fan_in, at::Tensor empty) {
  const double bound = 1 / std::sqrt(static_cast<double>(fan_in));
  return empty.uniform_(-bound, bound);
}

}  // namespace

at::Tensor linear_weight(std::int64_t out, std::int64_t in, c10::ScalarType dtype) {
  return within(in, at::empty({out, in}, dtype));
}

at::Tensor linear_bias(std::int64_t out, std::int64_t in, c10::ScalarType dtype) {
  return within(in, at::empty({out}, dtype));
}

}  // namespace treadle::forecasting

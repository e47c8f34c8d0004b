#include <treadle/core/training/scale_parameter.h>

#include <ATen/TensorOperators.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/expm1.h>
#include <ATen/ops/log.h>
#include <ATen/ops/softplus.h>

namespace treadle {
namespace {

/// The logarithm of 0 would be infinite; that of this number is not, nor is a gradient of it.
constexpr double kLeastSoftplus = 1e-20;

}  // namespace

at::Tensor scale_of(const at::Tensor& output) {
  return at::softplus(output) + kLeastScale;
}

// softplus(x) = log(1 + exp(x)) = d, so x = log(exp(d) - 1) = d + log(1 - exp(-d)), which does not
// overflow.
at::Tensor output_for_scale(const at::Tensor& scale) {
  const at::Tensor d = (scale - kLeastScale).clamp_min(kLeastSoftplus);
  return d + at::log(at::expm1(d.neg()).neg());
}

}  // namespace treadle

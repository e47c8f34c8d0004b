#include "newton_schulz.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/baddbmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/mm.h>

namespace treadle::optimizers {
namespace {

constexpr double kA = 3.4445;
constexpr double kB = -4.775;
constexpr double kC = 2.0315;
constexpr double kEps = 1e-7;
constexpr int kSteps = 5;

at::Tensor iterated(at::Tensor x) {
  for (int step = 0; step < kSteps; ++step) {
    const at::Tensor a = at::bmm(x, x.transpose(1, 2));
    x = at::baddbmm(x, at::baddbmm(a, a, a, kB, kC), x, kA, 1);
  }
  return x;
}

/// The same without a batch, which libtorch multiplies faster.
at::Tensor iterated_alone(at::Tensor x) {
  for (int step = 0; step < kSteps; ++step) {
    const at::Tensor a = at::mm(x, x.t());
    x = at::addmm(x, at::addmm(a, a, a, kB, kC), x, kA, 1);
  }
  return x;
}

}  // namespace

at::Tensor newton_schulz(const at::Tensor& x) {
  const bool is_tall = x.size(1) > x.size(2);
  const at::Tensor norm = x.square().sum({1, 2}, /*keepdim=*/true).sqrt();
  at::Tensor scaled = x / (norm + kEps);
  if (is_tall)
    scaled = scaled.transpose(1, 2).contiguous();
  scaled = scaled.size(0) == 1 ? iterated_alone(scaled.select(0, 0)).unsqueeze(0)
                               : iterated(std::move(scaled));
  return is_tall ? scaled.transpose(1, 2) : scaled;
}

}  // namespace treadle::optimizers

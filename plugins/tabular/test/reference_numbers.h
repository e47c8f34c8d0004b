#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

/// What reference.py fills networks with, and what it sums up.
namespace treadle::testing {

/// Element i of parameter k is sin(1.3 i + k) / 2.
inline void fill_parameters(const std::vector<at::Tensor>& parameters) {
  const c10::NoGradGuard no_gradients;
  for (std::size_t k = 0; k < parameters.size(); ++k) {
    const at::Tensor i = at::arange(parameters[k].numel(), at::kDouble);
    parameters[k].copy_(
        ((i * 1.3 + static_cast<double>(k)).sin() * 0.5).view(parameters[k].sizes()));
  }
}

/// Element i is 2 cos(0.37 i) + 0.05 i.
inline at::Tensor counted_rows(std::int64_t rows, std::int64_t width) {
  const at::Tensor i = at::arange(rows * width, at::kDouble);
  return ((i * 0.37).cos() * 2 + i * 0.05).view({rows, width});
}

/// Σ result_i cos(i)
inline at::Tensor weighted(const at::Tensor& result) {
  return (result.flatten() * at::arange(result.numel(), at::kDouble).cos()).sum();
}

/// Of each parameter Σ gradient_i cos(i / 2).
inline std::vector<double> slopes_of(const std::vector<at::Tensor>& parameters) {
  std::vector<double> slopes;
  for (const at::Tensor& parameter : parameters) {
    const at::Tensor gradient = parameter.grad().flatten();
    slopes.push_back(
        (gradient * (at::arange(gradient.numel(), at::kDouble) * 0.5).cos()).sum().item<double>());
  }
  return slopes;
}

inline std::vector<double> numbers_of(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.detach().to(at::kDouble).contiguous();
  return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
}

inline void expect_near(const std::vector<double>& got, const std::vector<double>& expected,
                        double tolerance = 1e-9) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], expected[i], tolerance) << i;
}

}  // namespace treadle::testing

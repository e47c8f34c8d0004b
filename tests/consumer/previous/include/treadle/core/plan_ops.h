#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include <ATen/core/Tensor.h>

#include <treadle/core/plan_op.h>

/// Operations that many layers are made of.
namespace treadle {

/// x Wᵀ + b over the last dimension of x, of two dimensions or more. `bias` may be undefined.
std::shared_ptr<const PlanOp> plan_linear(const at::Tensor& weight, const at::Tensor& bias);
/// Along a dimension, negative counts from the end.
std::shared_ptr<const PlanOp> plan_softmax(std::int64_t dim);

/// One after the other along a dimension.
std::shared_ptr<const PlanOp> plan_cat(std::int64_t dim);

/// A function of one tensor that libtorch has with its gradient: `forward(out, x)` writes,
/// `backward(gradient of x, gradient, of)` does so, given x or, where `reads_output`, what forward
/// wrote.
struct PlanUnary {
  std::string_view name;
  void (*forward)(at::Tensor& out, const at::Tensor& x);
  void (*backward)(at::Tensor& of_input, const at::Tensor& gradient, const at::Tensor& of);
  bool reads_output = false;
};
std::shared_ptr<const PlanOp> plan_unary(const PlanUnary& function);
std::shared_ptr<const PlanOp> plan_sigmoid();

}  // namespace treadle

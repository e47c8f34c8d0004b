#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include <ATen/core/Tensor.h>

#include <treadle/plan/op.h>

/// Ready-made operations for layers that implement Lowerable.
namespace treadle {

/// x Wᵀ + b over the last dimension of x, of two dimensions or more. `bias` may be undefined.
std::shared_ptr<const PlanOp> plan_linear(const at::Tensor& weight, const at::Tensor& bias);
/// Along a dimension; negative ones count from the end.
std::shared_ptr<const PlanOp> plan_softmax(std::int64_t dim);

/// Batch normalization over everything but dimension 1. A plan is made for one mode: `training` is
/// the layer's when it is lowered.
struct PlanBatchNorm {
  at::Tensor weight;
  at::Tensor bias;
  at::Tensor running_mean;
  at::Tensor running_var;
  bool training = true;
  double momentum = 0.1;
  double eps = 1e-5;
};
std::shared_ptr<const PlanOp> plan_batch_norm(const PlanBatchNorm& norm);
/// Layer normalization over the last dimension. `weight` and `bias` may be undefined, both.
std::shared_ptr<const PlanOp> plan_layer_norm(const at::Tensor& weight, const at::Tensor& bias,
                                              std::int64_t width, double eps);
/// Dropout in training: `rate` of the elements become 0. 0 < rate < 1.
std::shared_ptr<const PlanOp> plan_dropout(double rate);

/// Concatenation along a dimension.
std::shared_ptr<const PlanOp> plan_cat(std::int64_t dim);

/// A unary function with libtorch kernels for itself and its gradient. `forward(out, x)` writes to
/// `out`. `backward(of_input, gradient, of)` writes to `of_input`; `of` is x, or the output of
/// forward where `reads_output`.
struct PlanUnary {
  std::string_view name;
  void (*forward)(at::Tensor& out, const at::Tensor& x);
  void (*backward)(at::Tensor& of_input, const at::Tensor& gradient, const at::Tensor& of);
  bool reads_output = false;
};
std::shared_ptr<const PlanOp> plan_unary(const PlanUnary& function);
std::shared_ptr<const PlanOp> plan_sigmoid();
std::shared_ptr<const PlanOp> plan_tanh();
std::shared_ptr<const PlanOp> plan_silu();
std::shared_ptr<const PlanOp> plan_gelu(bool by_tanh = false);
/// With alpha 1.
std::shared_ptr<const PlanOp> plan_elu();

}  // namespace treadle

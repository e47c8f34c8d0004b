#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include <ATen/core/Tensor.h>

#include <treadle/core/model/model.h>
#include <treadle/core/model/tensor_spec.h>
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
/// x / sqrt(mean(x²) + eps) · weight over the last dimension.
std::shared_ptr<const PlanOp> plan_rms_norm(const at::Tensor& weight, double eps);
/// Normalization over groups of channels (dimension 1) and everything behind them. `weight` and
/// `bias` may be undefined, both.
std::shared_ptr<const PlanOp> plan_group_norm(const at::Tensor& weight, const at::Tensor& bias,
                                              std::int64_t groups, double eps);
/// Dropout in training: `rate` of the elements become 0. 0 < rate < 1.
std::shared_ptr<const PlanOp> plan_dropout(double rate);

/// Concatenation along a dimension.
std::shared_ptr<const PlanOp> plan_cat(std::int64_t dim);

/// A function that keeps nothing, with libtorch's kernels for itself and for the gradient of its
/// first input; further inputs have none. One line for each activation:
///
///     PlanFunction{"silu",
///                  [](at::Tensor& out, const Inputs& in) { at::silu_out(out, in[0]); },
///                  [](const PlanGradients& of) {
///                    at::silu_backward_out(of.of_inputs[0], of.of_output, of.inputs[0]);
///                  }}
struct PlanFunction {
  std::string_view name;
  /// Writes to `out`, which is contiguous and uninitialised.
  std::function<void(at::Tensor& out, const Inputs& inputs)> forward;
  /// Writes to `of_inputs[0]`, which is the same. Called only where that is wanted.
  std::function<void(const PlanGradients& gradients)> backward;
  PlanOp::Reads reads = {};
  /// The output's spec; null: that of the first input.
  std::function<TensorSpec(const TensorSpec& input)> result = nullptr;
};
std::shared_ptr<const PlanOp> plan_function(PlanFunction function);

std::shared_ptr<const PlanOp> plan_sigmoid();
std::shared_ptr<const PlanOp> plan_tanh();
std::shared_ptr<const PlanOp> plan_silu();
std::shared_ptr<const PlanOp> plan_gelu(bool by_tanh = false);
/// With alpha 1.
std::shared_ptr<const PlanOp> plan_elu();

}  // namespace treadle

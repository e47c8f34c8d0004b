#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/core/model/tensor_spec.h>

/// An operation of a compiled plan: a kernel that writes into given outputs, and its backward.
/// Needed by layers that implement treadle::Lowerable (lowerable.h) with kernels of their own.
/// Ready-made operations: ops.h.
namespace treadle {

/// Arguments of PlanOp::backward(). It overwrites gradients of inputs and adds to gradients of
/// parameters.
struct PlanGradients {
  const at::Tensor& of_output;
  std::span<const at::Tensor> inputs;  ///< undefined unless backward_reads().inputs
  const at::Tensor& output;            ///< undefined unless backward_reads().output
  std::span<const at::Tensor> kept;
  /// Shaped like the inputs and uninitialised; undefined where no gradient is required, and where
  /// the operation allocates.
  std::span<at::Tensor> of_inputs;
  /// Of the inputs, also where backward does not read them.
  std::span<const TensorSpec> sizes;
  /// Per input: whether its gradient is required.
  std::span<const bool> wanted;
  /// As PlanOp::parameters(); undefined for frozen parameters.
  std::span<const at::Tensor> of_parameters;
};

/// A kernel and its gradient, for inputs of known sizes.
///
/// A layer makes it for one plan, with the layer's parameters. Results and gradients equal those of
/// the layer's forward() under autograd bit for bit. It runs with gradient recording off, on
/// several threads at once, and therefore writes to no member.
class PlanOp {
 public:
  virtual ~PlanOp();

  /// "linear": shown to people.
  virtual std::string_view name() const = 0;

  /// The output's spec. Not called on operations that allocate.
  virtual TensorSpec result(std::span<const TensorSpec> inputs) const;

  /// Tensors that forward() saves for backward() besides inputs and output: a mask, indices, means.
  /// Only their number matters where the operation allocates.
  virtual std::vector<TensorSpec> keeps(std::span<const TensorSpec> inputs) const;

  /// True if its kernels return tensors of their own. `output`, `kept` and `of_inputs` are then
  /// passed undefined and the operation assigns them, without views of its arguments. An element of
  /// `of_inputs` that stays undefined means: no gradient.
  virtual bool allocates() const { return false; }

  /// Writes to `output`, which is contiguous and uninitialised.
  virtual void forward(const std::span<const at::Tensor>& inputs, at::Tensor& output,
                       std::span<at::Tensor> kept) const = 0;

  struct Reads {
    bool inputs = true;
    bool output = false;
  };
  /// The values that backward() reads; memory of the rest is reused before backward.
  virtual Reads backward_reads() const { return {}; }

  virtual void backward(const PlanGradients& gradients) const = 0;

  /// Parameters whose gradients backward() adds to.
  virtual std::vector<at::Tensor> parameters() const { return {}; }

  /// Whether forward() draws random numbers.
  virtual bool draws() const { return false; }
};

}  // namespace treadle

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <treadle/core/model.h>
#include <treadle/core/tensor_spec.h>

/// What a layer says to be a part of a compiled plan: the operations it is made of, whose kernels
/// write where they are told and whose gradients need no recording.
namespace treadle {

/// What PlanOp::backward() works on. Gradients are written, those of parameters added to.
struct PlanGradients {
  const at::Tensor& of_output;
  Inputs inputs;             ///< undefined where backward_reads() says that they are not read
  const at::Tensor& output;  ///< so, too
  std::span<const at::Tensor> kept;
  /// As large as the inputs, not initialised; undefined where none is wanted, or where the
  /// operation allocates.
  std::span<at::Tensor> of_inputs;
  /// Of the inputs, also where they are not read.
  std::span<const TensorSpec> sizes;
  /// As of_inputs: whether a gradient is wanted.
  std::span<const bool> wanted;
  /// As PlanOp::parameters(); undefined for one that is frozen.
  std::span<const at::Tensor> of_parameters;
};

/// One operation of a plan: a kernel and its gradient, for inputs whose sizes are all known.
///
/// Made for one plan by a layer, with the layer's parameters; gives, to the last bit, what the
/// layer's forward() and libtorch's gradient of it would. Run without recording of gradients, by
/// several threads at once, so it writes to no member.
class PlanOp {
 public:
  virtual ~PlanOp();

  /// "linear": what people see.
  virtual std::string_view name() const = 0;

  /// What it gives for such inputs. Not asked of one that allocates.
  virtual TensorSpec result(std::span<const TensorSpec> inputs) const;

  /// What forward() leaves for backward() besides inputs and output: a mask, indices, means. Of one
  /// that allocates only their number counts.
  virtual std::vector<TensorSpec> keeps(std::span<const TensorSpec> inputs) const;

  /// Whether its kernels return tensors of their own instead of writing where they are told.
  /// `output`, `kept` and `of_inputs` then arrive undefined, and it assigns them, no views of what
  /// it was given; what it leaves undefined in `of_inputs` has no gradient.
  virtual bool allocates() const { return false; }

  /// Writes to `output`, which is contiguous and not initialised.
  virtual void forward(const Inputs& inputs, at::Tensor& output,
                       std::span<at::Tensor> kept) const = 0;

  struct Reads {
    bool inputs = true;
    bool output = false;
  };
  /// What backward() needs of forward()'s; the rest need not be kept until then.
  virtual Reads backward_reads() const { return {}; }

  virtual void backward(const PlanGradients& gradients) const = 0;

  /// Whose gradients backward() adds.
  virtual std::vector<at::Tensor> parameters() const { return {}; }

  /// Whether forward() draws random numbers.
  virtual bool draws() const { return false; }
};

/// A value of a plan that is being made: what goes in, or what an operation gives.
enum class PlanValue : std::uint32_t {};

/// Steps from number to number. Neighbours among them run as one pass over memory, with the bits
/// that libtorch's kernels give one after the other: each rounds once.
enum class ElementStep : std::uint8_t {
  kAdd,       ///< a + b
  kSubtract,  ///< a - b
  kMultiply,  ///< a · b
  kScale,     ///< a · number
  kDivide,    ///< a / number
  kShift,     ///< a + number
  kRelu,      ///< max(0, a)
  kLeakyRelu  ///< a where a > 0, else a · number
};

/// Where a layer puts its operations.
class PlanBuilder {
 public:
  virtual ~PlanBuilder();

  /// Sizes are all known. Until something is added.
  virtual const TensorSpec& spec(PlanValue value) const = 0;

  virtual PlanValue apply(std::shared_ptr<const PlanOp> op, std::span<const PlanValue> inputs) = 0;
  PlanValue apply(std::shared_ptr<const PlanOp> op, PlanValue input) {
    return apply(std::move(op), std::span(&input, 1));
  }

  virtual PlanValue step(ElementStep step, PlanValue a, double number = 0) = 0;
  /// Both have the same sizes.
  virtual PlanValue step(ElementStep step, PlanValue a, PlanValue b) = 0;

  /// The same numbers in other sizes: costs nothing.
  virtual PlanValue reshape(PlanValue value, std::vector<std::int64_t> sizes) = 0;
};

/// A layer, or a module that is adapted as one, that can say itself in operations. One that cannot
/// is a part of a plan as well: it is called, and libtorch records its gradients.
class Planned {
 public:
  virtual ~Planned();

  /// What forward() would give for inputs that are all there, in the present mode (training or
  /// evaluation); nothing where it cannot be said for such inputs, and then nothing was added.
  virtual std::optional<PlanValue> plan(PlanBuilder& builder,
                                        std::span<const PlanValue> inputs) const = 0;
};

}  // namespace treadle

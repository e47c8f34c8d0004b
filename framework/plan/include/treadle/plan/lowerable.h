#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <treadle/core/model/tensor_spec.h>

/// How a layer is lowered to operations of a compiled plan. Needed by authors of layers; a layer
/// without it works in compiled graphs as well, as an opaque call that autograd differentiates.
namespace treadle {

class PlanOp;

/// A value of the plan that is being built: an input, or the result of an operation.
enum class PlanValue : std::uint32_t {};

/// Element-wise operations. Adjacent ones are fused into one kernel, with the bits of libtorch's
/// kernels run one after the other: every operation rounds once.
enum class ElementwiseOp : std::uint8_t {
  kAdd,       ///< a + b
  kSubtract,  ///< a - b
  kMultiply,  ///< a · b
  kScale,     ///< a · number
  kDivide,    ///< a / number
  kShift,     ///< a + number
  kRelu,      ///< max(0, a)
  kLeakyRelu  ///< a where a > 0, else a · number
};

/// Collects the operations of a layer.
class PlanBuilder {
 public:
  virtual ~PlanBuilder();

  /// All sizes are known. The reference is valid until the next operation is added.
  virtual const TensorSpec& spec(PlanValue value) const = 0;

  virtual PlanValue apply(std::shared_ptr<const PlanOp> op, std::span<const PlanValue> inputs) = 0;
  PlanValue apply(std::shared_ptr<const PlanOp> op, PlanValue input) {
    return apply(std::move(op), std::span(&input, 1));
  }

  virtual PlanValue elementwise(ElementwiseOp op, PlanValue a, double number = 0) = 0;
  /// Expects two values of the same spec.
  virtual PlanValue elementwise(ElementwiseOp op, PlanValue a, PlanValue b) = 0;

  /// The same elements in another shape. Free: no instruction is left of it.
  virtual PlanValue reshape(PlanValue value, std::vector<std::int64_t> sizes) = 0;

  /// The same value, at which gradients end. Free, too.
  virtual PlanValue detached(PlanValue value) = 0;

  /// As LayerContext::truncates_bptt(), for layers that carry a state through time.
  virtual bool truncates_bptt() const { return false; }
};

/// A layer, or a module adapted as one, that can be lowered. Found by dynamic_cast.
class Lowerable {
 public:
  virtual ~Lowerable();

  /// Adds the operations of forward() in the present mode (training or evaluation), for inputs that
  /// are all present. Returns nothing, and has added nothing, where these inputs cannot be lowered.
  virtual std::optional<PlanValue> lower(PlanBuilder& builder,
                                         std::span<const PlanValue> inputs) const = 0;
};

/// A module of your own, adapted as a layer, whose forward() may be recorded once for each plan: a
/// promise that it makes the same calls of libtorch's operators for inputs of the same sizes, and
/// has no other effect. Modules of torch::nn need no promise. What a recording shows to be
/// otherwise is called instead, and the plan lists why.
class Recordable {
 public:
  virtual ~Recordable();
};

}  // namespace treadle

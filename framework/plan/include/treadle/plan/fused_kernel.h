#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/plan/lowerable.h>

namespace treadle::plan {

/// The operation of one step of a fused kernel: those that layers may add, and their gradients.
enum class ElementwiseRule : std::uint8_t {
  // As ElementwiseOp, in the same order.
  kAdd,
  kSubtract,
  kMultiply,
  kScale,
  kDivide,
  kShift,
  kRelu,
  kLeakyRelu,
  // Gradients.
  kReluGradient,      ///< a where b > 0, else 0; b is the output of relu
  kLeakyReluGradient  ///< a where b > 0, else a · number; b is the input of leaky relu
};

ElementwiseRule rule_of(ElementwiseOp op);
const char* name_of(ElementwiseRule rule);
bool takes_two(ElementwiseRule rule);
/// Whether the gradient of such a step reads the step's inputs.
bool gradient_reads_inputs(ElementwiseRule rule);

/// Element-wise operations over tensors of one size, in one pass over memory. Every step rounds
/// once, so the bits are those of libtorch's kernels, which need a pass each.
class FusedKernel {
 public:
  /// Where a step reads from.
  struct Operand {
    bool is_step = false;  ///< an earlier step's result, else a given tensor
    std::size_t index = 0;
  };
  struct Step {
    ElementwiseRule rule;
    double number = 0;
    Operand a;
    Operand b;               ///< where the rule takes two
    bool is_wanted = false;  ///< its result is written to memory
  };

  /// Longer ones are cut: the intermediate blocks of all steps must stay in the L1 cache.
  static constexpr std::size_t kMaxSteps = 12;

  explicit FusedKernel(std::vector<Step> steps) : steps_(std::move(steps)) {}

  /// `wanted`: in order, one tensor for each requested step, written. It may be one of the `given`
  /// that no later step reads.
  void run(std::span<const at::Tensor> given, std::span<at::Tensor> wanted) const;

  const std::vector<Step>& steps() const { return steps_; }

 private:
  std::vector<Step> steps_;
};

}  // namespace treadle::plan

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/core/plan_op.h>

namespace treadle::graph {

/// What one step of a pass does: those that layers may ask for, and gradients of them.
enum class ElementRule : std::uint8_t {
  kAdd,
  kSubtract,
  kMultiply,
  kScale,
  kDivide,
  kShift,
  kRelu,
  kLeakyRelu,
  kReluGradient,      ///< a where b > 0, else 0; b is what relu gave
  kLeakyReluGradient  ///< a where b > 0, else a · number; b is what leaky relu was given
};

ElementRule rule_of(ElementStep step);
const char* name_of(ElementRule rule);
bool takes_two(ElementRule rule);
/// Whether the gradient of such a step reads what the step was given.
bool gradient_reads_inputs(ElementRule rule);

/// Steps over tensors of one number of elements, in one pass over memory. Every step rounds once,
/// so the bits are those of libtorch's kernels, which make a pass each.
class ElementPass {
 public:
  /// Where a step takes a number from.
  struct Operand {
    bool is_step = false;  ///< of an earlier step, else of a tensor that is given
    std::size_t index = 0;
  };
  struct Step {
    ElementRule rule;
    double number = 0;
    Operand a;
    Operand b;               ///< where the rule takes two
    bool is_wanted = false;  ///< its values are written
  };

  /// Longer ones are cut: what a pass works on at a time must stay in the first cache.
  static constexpr std::size_t kMostSteps = 12;

  explicit ElementPass(std::vector<Step> steps) : steps_(std::move(steps)) {}

  /// `wanted`: a tensor for each step that is wanted, in order, written; it may be one of those
  /// `given` that no later step reads.
  void run(std::span<const at::Tensor> given, std::span<at::Tensor> wanted) const;

  const std::vector<Step>& steps() const { return steps_; }

 private:
  std::vector<Step> steps_;
};

}  // namespace treadle::graph

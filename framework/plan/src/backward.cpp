#include <utility>
#include <vector>

#include <treadle/plan/op.h>
#include <treadle/plan/passes.h>
#include <treadle/plan/program.h>

// Reverse-mode differentiation of a lowered forward.
//
// Gradients are added in the order in which autograd adds them; the last bit of a sum depends on
// it.
// - Autograd runs the nodes of one thread from the last recorded to the first. So does this pass:
// it
//   visits the forward's instructions from the last to the first.
// - Where several instructions read a value, the gradient of the last reader therefore arrives
// first,
//   and the others are added to it one by one: ((last + ...) + second) + first.
// - The sum of a value is complete when the instruction that computes the value is visited. Until
//   then of_slots_ holds the arrivals; gradient_of() turns them into additions.
// - An alias is visited like an instruction. An alias without a change of shape is an accumulation
//   point (graph/src/run/gradient_order.h): what one user of a value sends back is summed there,
//   and arrives at the value as one gradient.
// - Gradients of parameters are no slots. Instructions add to them in program order when they run
//   (graph/src/compile/run_plan.cpp); note_who_adds_to_others() tells each whether it is the first
//   and whether it is the last.
//
// kNoSlot stands for a gradient that does not exist for any run: a value without needs_gradient. A
// gradient that may exist in one run and not in another (a branch that was not taken) has a slot,
// and Run::absent says which.

namespace treadle::plan {
namespace {

using Kind = Instruction::Kind;

class Backward {
 public:
  explicit Backward(Program& program) : program_(program), of_slots_(program.slots.size()) {}

  void add() {
    for (const SlotId output : program_.outputs)
      program_.output_gradients.push_back(begin_at(output));
    for (std::size_t i = program_.forward.size(); i-- > 0;)
      add_gradient_of(i);
    for (const SlotId input : program_.inputs) {
      const bool is_wanted = input != kNoSlot && program_.slots[input].needs_gradient;
      program_.input_gradients.push_back(is_wanted ? gradient_of(input) : kNoSlot);
    }
    note_who_adds_to_others();
  }

 private:
  /// A kernel that adds to an existing sum rounds otherwise than one whose result is added, so the
  /// first one and the others are run in different ways. The last one completes the sum.
  void note_who_adds_to_others() {
    std::vector<bool> has_one(program_.parameters.size());
    for (Instruction& instruction : program_.backward) {
      for (const std::size_t parameter : instruction.parameters) {
        instruction.adds_to_others.push_back(has_one[parameter]);
        has_one[parameter] = true;
      }
    }
    for (auto instruction = program_.backward.rbegin(); instruction != program_.backward.rend();
         ++instruction) {
      for (const std::size_t parameter : instruction->parameters) {
        instruction->is_last_to_add.push_back(has_one[parameter]);
        has_one[parameter] = false;
      }
    }
  }

  /// An output's gradient is given from outside. It is the first to arrive: nothing reads an output
  /// after the forward's end.
  SlotId begin_at(SlotId output) {
    if (output == kNoSlot || !program_.slots[output].needs_gradient)
      return kNoSlot;
    const SlotId gradient = add_slot(output, Memory::kInput);
    of_slots_[output].push_back(gradient);
    return gradient;
  }

  /// For the gradient of a value.
  SlotId add_slot(SlotId value, Memory memory) {
    Slot slot;
    slot.spec = program_.slots[value].spec;
    slot.memory = memory;
    slot.root = program_.slots.size();
    program_.slots.push_back(std::move(slot));
    of_slots_.emplace_back();
    return program_.slots.size() - 1;
  }

  /// The same gradient in the shape of another value.
  SlotId add_alias(SlotId gradient, SlotId of) {
    const SlotId slot = add_slot(of, program_.slots[gradient].memory);
    program_.slots[slot].root = program_.slots[gradient].root;
    return slot;
  }

  SlotId add_element(ElementwiseRule rule, SlotId a, SlotId b, double number) {
    Instruction instruction;
    instruction.kind = Kind::kFusedKernel;
    instruction.site = site_;
    instruction.inputs = {a};
    if (takes_two(rule))
      instruction.inputs.push_back(b);
    const SlotId output = add_slot(a, Memory::kArena);
    instruction.outputs = {output};
    instruction.kernel.emplace(
        std::vector{FusedKernel::Step{rule, number, {false, 0}, {false, 1}, /*is_wanted=*/true}});
    program_.backward.push_back(std::move(instruction));
    return output;
  }

  /// The sum of all that arrived; kNoSlot where nothing did.
  SlotId gradient_of(SlotId value) {
    std::vector<SlotId>& arrived = of_slots_[value];
    if (arrived.empty())
      return kNoSlot;
    SlotId sum = arrived.front();
    const std::vector<SlotId> others(arrived.begin() + 1, arrived.end());
    for (const SlotId other : others)
      sum = add_element(ElementwiseRule::kAdd, sum, other, 0);
    of_slots_[value] = {sum};
    return sum;
  }

  bool is_wanted(SlotId value) const {
    return value != kNoSlot && program_.slots[value].needs_gradient;
  }

  /// A gradient arrives. Several values may be given one slot (kAdd): slots are written once.
  void give(SlotId value, SlotId gradient) {
    if (is_wanted(value))
      of_slots_[value].push_back(gradient);
  }

  void add_gradient_of(std::size_t index) {
    site_ = program_.forward[index].site;
    switch (program_.forward[index].kind) {
      case Kind::kOperation:
        return of_operation(index);
      case Kind::kFusedKernel:
        return of_element(program_.forward[index]);
      case Kind::kCalls:
        return of_calls(index);
      case Kind::kAlias: {
        const SlotId source = program_.forward[index].inputs[0];
        const SlotId gradient = gradient_of(program_.forward[index].outputs[0]);
        if (gradient != kNoSlot && is_wanted(source))
          give(source, add_alias(gradient, source));
        return;
      }
      default:
        return;
    }
  }

  /// Inputs of the gradient, in this order: the output's gradient; the forward's inputs and output
  /// as far as backward_reads(); what forward kept. Their slots stay alive until then (layout.cpp).
  void of_operation(std::size_t index) {
    const SlotId output = program_.forward[index].outputs[0];
    const SlotId gradient = gradient_of(output);
    if (gradient == kNoSlot || !program_.slots[output].needs_gradient)
      return;
    const Instruction& forward = program_.forward[index];
    Instruction instruction;
    instruction.kind = Kind::kOperationGradient;
    instruction.site = site_;
    instruction.forward = index;
    instruction.operation = forward.operation;
    instruction.parameters = forward.parameters;
    instruction.inputs = {gradient};
    const PlanOp::Reads reads = forward.operation->backward_reads();
    if (reads.inputs)
      instruction.inputs.insert(instruction.inputs.end(), forward.inputs.begin(),
                                forward.inputs.end());
    if (reads.output)
      instruction.inputs.push_back(output);
    instruction.inputs.insert(instruction.inputs.end(), forward.kept.begin(), forward.kept.end());
    const Memory memory = forward.operation->allocates() ? Memory::kOwn : Memory::kArena;
    const std::vector<SlotId> of = forward.inputs;
    for (const SlotId input : of) {
      instruction.sizes.push_back(program_.slots[input].spec);
      const SlotId slot = is_wanted(input) ? add_slot(input, memory) : kNoSlot;
      instruction.outputs.push_back(slot);
      give(input, slot);
    }
    program_.backward.push_back(std::move(instruction));
  }

  /// The formulas are libtorch's, so that the bits are: the gradient of relu reads the output, that
  /// of leaky relu the input. Runs before fusion: a kernel has one step.
  void of_element(const Instruction& forward) {
    const FusedKernel::Step step = forward.kernel->steps().front();
    const SlotId output = forward.outputs[0];
    const SlotId a = forward.inputs[0];
    const SlotId b = takes_two(step.rule) ? forward.inputs[1] : kNoSlot;
    const SlotId gradient = gradient_of(output);
    if (gradient == kNoSlot)
      return;
    switch (step.rule) {
      case ElementwiseRule::kAdd:
        give(a, gradient);
        give(b, gradient);
        return;
      case ElementwiseRule::kSubtract:
        give(a, gradient);
        if (is_wanted(b))
          give(b, add_element(ElementwiseRule::kScale, gradient, kNoSlot, -1));
        return;
      case ElementwiseRule::kMultiply:
        if (is_wanted(a))
          give(a, add_element(ElementwiseRule::kMultiply, gradient, b, 0));
        if (is_wanted(b))
          give(b, add_element(ElementwiseRule::kMultiply, gradient, a, 0));
        return;
      case ElementwiseRule::kScale:
      case ElementwiseRule::kDivide:
        return give(a, add_element(step.rule, gradient, kNoSlot, step.number));
      case ElementwiseRule::kShift:
        return give(a, gradient);
      case ElementwiseRule::kRelu:
        return give(a, add_element(ElementwiseRule::kReluGradient, gradient, output, 0));
      case ElementwiseRule::kLeakyRelu:
        return give(a, add_element(ElementwiseRule::kLeakyReluGradient, gradient, a, step.number));
      case ElementwiseRule::kReluGradient:
      case ElementwiseRule::kLeakyReluGradient:
        return;
    }
  }

  /// Autograd differentiates a stretch of calls as one, from its results to its leaves. A result
  /// without a gradient in any run keeps its place as kNoSlot.
  void of_calls(std::size_t index) {
    Instruction instruction;
    instruction.kind = Kind::kCallsGradient;
    instruction.site = site_;
    instruction.forward = index;
    const std::vector<SlotId> outputs = program_.forward[index].outputs;
    bool any = false;
    for (const SlotId output : outputs) {
      const SlotId gradient = is_wanted(output) ? gradient_of(output) : kNoSlot;
      instruction.inputs.push_back(gradient);
      any = any || gradient != kNoSlot;
    }
    if (!any)
      return;
    instruction.parameters = program_.forward[index].parameters;
    const std::vector<SlotId> inputs = program_.forward[index].inputs;
    for (const SlotId input : inputs) {
      const SlotId slot = is_wanted(input) ? add_slot(input, Memory::kOwn) : kNoSlot;
      instruction.outputs.push_back(slot);
      give(input, slot);
    }
    program_.backward.push_back(std::move(instruction));
  }

  Program& program_;
  std::vector<std::vector<SlotId>> of_slots_;  // gradients that arrived at each slot
  std::size_t site_ = 0;
};

}  // namespace

void add_backward(Program& program) {
  Backward(program).add();
}

}  // namespace treadle::plan

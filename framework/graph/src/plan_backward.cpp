#include <utility>
#include <vector>

#include "plan_program.h"

namespace treadle::graph {
namespace {

using Kind = PlanInstruction::Kind;

/// Walks the forward from its end, as libtorch does: where gradients meet, that of the last to run
/// comes first.
class Backward {
 public:
  explicit Backward(PlanProgram& program) : program_(program), of_slots_(program.slots.size()) {}

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
  void note_who_adds_to_others() {
    std::vector<bool> has_one(program_.parameters.size());
    for (PlanInstruction& instruction : program_.backward) {
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

  SlotId begin_at(SlotId output) {
    if (output == kNoSlot || !program_.slots[output].needs_gradient)
      return kNoSlot;
    const SlotId gradient = add_slot(output, PlanMemory::kInput);
    of_slots_[output].push_back(gradient);
    return gradient;
  }

  /// For the gradient of a value.
  SlotId add_slot(SlotId value, PlanMemory memory) {
    PlanSlot slot;
    slot.spec = program_.slots[value].spec;
    slot.memory = memory;
    slot.root = program_.slots.size();
    program_.slots.push_back(std::move(slot));
    of_slots_.emplace_back();
    return program_.slots.size() - 1;
  }

  SlotId add_alias(SlotId gradient, SlotId of) {
    const SlotId slot = add_slot(of, program_.slots[gradient].memory);
    program_.slots[slot].root = program_.slots[gradient].root;
    return slot;
  }

  SlotId add_element(ElementRule rule, SlotId a, SlotId b, double number) {
    PlanInstruction instruction;
    instruction.kind = Kind::kElements;
    instruction.site = site_;
    instruction.inputs = {a};
    if (takes_two(rule))
      instruction.inputs.push_back(b);
    const SlotId output = add_slot(a, PlanMemory::kArena);
    instruction.outputs = {output};
    instruction.elements.emplace(
        std::vector{ElementPass::Step{rule, number, {false, 0}, {false, 1}, /*is_wanted=*/true}});
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
      sum = add_element(ElementRule::kAdd, sum, other, 0);
    of_slots_[value] = {sum};
    return sum;
  }

  bool is_wanted(SlotId value) const {
    return value != kNoSlot && program_.slots[value].needs_gradient;
  }

  void give(SlotId value, SlotId gradient) {
    if (is_wanted(value))
      of_slots_[value].push_back(gradient);
  }

  void add_gradient_of(std::size_t index) {
    site_ = program_.forward[index].site;
    switch (program_.forward[index].kind) {
      case Kind::kOperation:
        return of_operation(index);
      case Kind::kElements:
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

  void of_operation(std::size_t index) {
    const SlotId output = program_.forward[index].outputs[0];
    const SlotId gradient = gradient_of(output);
    if (gradient == kNoSlot || !program_.slots[output].needs_gradient)
      return;
    const PlanInstruction& forward = program_.forward[index];
    PlanInstruction instruction;
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
    const PlanMemory memory =
        forward.operation->allocates() ? PlanMemory::kOwn : PlanMemory::kArena;
    const std::vector<SlotId> of = forward.inputs;
    for (const SlotId input : of) {
      instruction.sizes.push_back(program_.slots[input].spec);
      const SlotId slot = is_wanted(input) ? add_slot(input, memory) : kNoSlot;
      instruction.outputs.push_back(slot);
      give(input, slot);
    }
    program_.backward.push_back(std::move(instruction));
  }

  void of_element(const PlanInstruction& forward) {
    const ElementPass::Step step = forward.elements->steps().front();
    const SlotId output = forward.outputs[0];
    const SlotId a = forward.inputs[0];
    const SlotId b = takes_two(step.rule) ? forward.inputs[1] : kNoSlot;
    const SlotId gradient = gradient_of(output);
    if (gradient == kNoSlot)
      return;
    switch (step.rule) {
      case ElementRule::kAdd:
        give(a, gradient);
        give(b, gradient);
        return;
      case ElementRule::kSubtract:
        give(a, gradient);
        if (is_wanted(b))
          give(b, add_element(ElementRule::kScale, gradient, kNoSlot, -1));
        return;
      case ElementRule::kMultiply:
        if (is_wanted(a))
          give(a, add_element(ElementRule::kMultiply, gradient, b, 0));
        if (is_wanted(b))
          give(b, add_element(ElementRule::kMultiply, gradient, a, 0));
        return;
      case ElementRule::kScale:
      case ElementRule::kDivide:
        return give(a, add_element(step.rule, gradient, kNoSlot, step.number));
      case ElementRule::kShift:
        return give(a, gradient);
      case ElementRule::kRelu:
        return give(a, add_element(ElementRule::kReluGradient, gradient, output, 0));
      case ElementRule::kLeakyRelu:
        return give(a, add_element(ElementRule::kLeakyReluGradient, gradient, a, step.number));
      case ElementRule::kReluGradient:
      case ElementRule::kLeakyReluGradient:
        return;
    }
  }

  void of_calls(std::size_t index) {
    PlanInstruction instruction;
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
      const SlotId slot = is_wanted(input) ? add_slot(input, PlanMemory::kOwn) : kNoSlot;
      instruction.outputs.push_back(slot);
      give(input, slot);
    }
    program_.backward.push_back(std::move(instruction));
  }

  PlanProgram& program_;
  std::vector<std::vector<SlotId>> of_slots_;  // gradients that arrived at each slot
  std::size_t site_ = 0;
};

}  // namespace

void add_backward(PlanProgram& program) {
  Backward(program).add();
}

}  // namespace treadle::graph

#include <algorithm>
#include <utility>
#include <vector>

#include <treadle/plan/passes.h>
#include <treadle/plan/program.h>

// Joins adjacent element-wise operations into kernels that pass over memory once.
//
// Only neighbours of one spec are joined, in their order, and every step rounds once: the bits are
// those of one kernel per operation. Intermediate results that nothing outside the kernel reads are
// not written to memory.
//
// Aliases have served their purpose once the backward exists (they mark accumulation points and
// carry shapes), so they are removed first: they would separate neighbours. Instructions of the
// backward refer to the forward's by index; both removals return the new indices.

namespace treadle::plan {
namespace {

/// Counts who reads each slot: instructions, and whoever takes outputs and gradients of inputs. A
/// range that is fused is subtracted for the while, to find out what is read outside of it.
class Readers {
 public:
  explicit Readers(const Program& program) : counts_(program.slots.size()) {
    for (const auto* list : {&program.forward, &program.backward}) {
      for (const Instruction& instruction : *list)
        count(instruction, 1);
    }
    for (const auto* slots : {&program.outputs, &program.input_gradients}) {
      for (const SlotId slot : *slots) {
        if (slot != kNoSlot)
          ++counts_[slot];
      }
    }
    // Whoever reads another shape of a root reads the root.
    for (SlotId slot = 0; slot < program.slots.size(); ++slot) {
      if (program.slots[slot].root != slot)
        counts_[program.slots[slot].root] += counts_[slot];
    }
  }
  void count(const Instruction& instruction, int by) {
    for (const SlotId slot : instruction.inputs) {
      if (slot != kNoSlot)
        counts_[slot] += by;
    }
  }
  bool any(SlotId slot) const { return counts_[slot] > 0; }

 private:
  std::vector<int> counts_;
};

bool can_join(const Program& program, const Instruction& a, const Instruction& b) {
  const Slot& of_a = program.slots[a.outputs[0]];
  const Slot& of_b = program.slots[b.outputs[0]];
  return of_a.spec == of_b.spec;
}

Instruction fuse_range(const Program& program, const std::vector<Instruction>& list,
                       std::size_t begin, std::size_t end, Readers& readers) {
  Instruction joint;
  joint.kind = Instruction::Kind::kFusedKernel;
  joint.site = list[begin].site;
  for (std::size_t i = begin; i < end; ++i)
    readers.count(list[i], -1);
  std::vector<FusedKernel::Step> steps;
  std::vector<SlotId> results;
  const auto operand = [&](SlotId slot) -> FusedKernel::Operand {
    // All steps have one spec, so an operand of another shape is found by its root.
    const auto step = std::find(results.begin(), results.end(), program.slots[slot].root);
    if (step != results.end())
      return {true, static_cast<std::size_t>(step - results.begin())};
    auto given = std::find(joint.inputs.begin(), joint.inputs.end(), slot);
    if (given == joint.inputs.end())
      given = joint.inputs.insert(joint.inputs.end(), slot);
    return {false, static_cast<std::size_t>(given - joint.inputs.begin())};
  };
  for (std::size_t i = begin; i < end; ++i) {
    FusedKernel::Step step = list[i].kernel->steps().front();
    step.a = operand(list[i].inputs[0]);
    if (takes_two(step.rule))
      step.b = operand(list[i].inputs[1]);
    step.is_wanted = readers.any(list[i].outputs[0]);
    if (step.is_wanted)
      joint.outputs.push_back(list[i].outputs[0]);
    results.push_back(list[i].outputs[0]);
    steps.push_back(step);
  }
  for (std::size_t i = begin; i < end; ++i)
    readers.count(list[i], 1);
  joint.kernel.emplace(std::move(steps));
  return joint;
}

/// Removes aliases. Returns the new index of each instruction; of an alias, that of its successor.
std::vector<std::size_t> drop_aliases(std::vector<Instruction>& list) {
  std::vector<std::size_t> places;
  std::vector<Instruction> kept;
  for (Instruction& instruction : list) {
    places.push_back(kept.size());
    if (instruction.kind != Instruction::Kind::kAlias)
      kept.push_back(std::move(instruction));
  }
  list = std::move(kept);
  return places;
}

/// Expects a list without aliases. Returns the new index of each instruction; those of one kernel
/// share one.
std::vector<std::size_t> fuse(const Program& program, std::vector<Instruction>& list,
                              Readers& readers) {
  std::vector<std::size_t> places;
  std::vector<Instruction> fused;
  for (std::size_t begin = 0; begin < list.size();) {
    std::size_t end = begin + 1;
    if (list[begin].kind == Instruction::Kind::kFusedKernel) {
      while (end < list.size() && list[end].kind == Instruction::Kind::kFusedKernel &&
             end - begin < FusedKernel::kMaxSteps && can_join(program, list[begin], list[end]))
        ++end;
      Instruction joint = fuse_range(program, list, begin, end, readers);
      // Without readers: not computed.
      const bool is_read = !joint.outputs.empty();
      places.insert(places.end(), end - begin, fused.size());
      if (is_read)
        fused.push_back(std::move(joint));
    } else {
      places.push_back(fused.size());
      fused.push_back(std::move(list[begin]));
    }
    begin = end;
  }
  list = std::move(fused);
  return places;
}

}  // namespace

void fuse_elementwise(Program& program) {
  for (const auto* list : {&program.forward, &program.backward}) {
    for (const Instruction& instruction : *list)
      program.elementwise_ops += instruction.kind == Instruction::Kind::kFusedKernel ? 1 : 0;
  }
  const std::vector<std::size_t> without_aliases = drop_aliases(program.forward);
  Readers readers(program);
  const std::vector<std::size_t> places = fuse(program, program.forward, readers);
  for (Instruction& instruction : program.backward) {
    if (instruction.kind == Instruction::Kind::kOperationGradient ||
        instruction.kind == Instruction::Kind::kCallsGradient)
      instruction.forward = places[without_aliases[instruction.forward]];
  }
  fuse(program, program.backward, readers);
}

}  // namespace treadle::plan

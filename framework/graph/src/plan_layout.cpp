#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "plan_program.h"

namespace treadle::graph {
namespace {

using Kind = PlanInstruction::Kind;

/// Slots begin at multiples of it: a few cache lines, and what vector units like.
constexpr std::size_t kAlignment = 256;

/// Slots that something other than the instructions `begin` … `end` of `list` reads.
class Readers {
 public:
  explicit Readers(const PlanProgram& program) : counts_(program.slots.size()) {
    for (const auto* list : {&program.forward, &program.backward}) {
      for (const PlanInstruction& instruction : *list)
        count(instruction, 1);
    }
    for (const auto* slots : {&program.outputs, &program.input_gradients}) {
      for (const SlotId slot : *slots) {
        if (slot != kNoSlot)
          ++counts_[slot];
      }
    }
    // Who reads numbers in other sizes reads the root's.
    for (SlotId slot = 0; slot < program.slots.size(); ++slot) {
      if (program.slots[slot].root != slot)
        counts_[program.slots[slot].root] += counts_[slot];
    }
  }
  void count(const PlanInstruction& instruction, int by) {
    for (const SlotId slot : instruction.inputs) {
      if (slot != kNoSlot)
        counts_[slot] += by;
    }
  }
  bool any(SlotId slot) const { return counts_[slot] > 0; }

 private:
  std::vector<int> counts_;
};

bool can_join(const PlanProgram& program, const PlanInstruction& a, const PlanInstruction& b) {
  const PlanSlot& of_a = program.slots[a.outputs[0]];
  const PlanSlot& of_b = program.slots[b.outputs[0]];
  return of_a.spec == of_b.spec;
}

PlanInstruction joined(const PlanProgram& program, const std::vector<PlanInstruction>& list,
                       std::size_t begin, std::size_t end, Readers& readers) {
  PlanInstruction pass;
  pass.kind = Kind::kElements;
  pass.site = list[begin].site;
  for (std::size_t i = begin; i < end; ++i)
    readers.count(list[i], -1);
  std::vector<ElementPass::Step> steps;
  std::vector<SlotId> results;
  const auto operand = [&](SlotId slot) -> ElementPass::Operand {
    // Steps have results of the same sizes, so that one under another name has its root's.
    const auto step = std::find(results.begin(), results.end(), program.slots[slot].root);
    if (step != results.end())
      return {true, static_cast<std::size_t>(step - results.begin())};
    auto given = std::find(pass.inputs.begin(), pass.inputs.end(), slot);
    if (given == pass.inputs.end())
      given = pass.inputs.insert(pass.inputs.end(), slot);
    return {false, static_cast<std::size_t>(given - pass.inputs.begin())};
  };
  for (std::size_t i = begin; i < end; ++i) {
    ElementPass::Step step = list[i].elements->steps().front();
    step.a = operand(list[i].inputs[0]);
    if (takes_two(step.rule))
      step.b = operand(list[i].inputs[1]);
    step.is_wanted = readers.any(list[i].outputs[0]);
    if (step.is_wanted)
      pass.outputs.push_back(list[i].outputs[0]);
    results.push_back(list[i].outputs[0]);
    steps.push_back(step);
  }
  for (std::size_t i = begin; i < end; ++i)
    readers.count(list[i], 1);
  pass.elements.emplace(std::move(steps));
  return pass;
}

/// Other names for the same numbers have done their duty. Where each instruction is found
/// afterwards; of a name, what came after it.
std::vector<std::size_t> drop_aliases(std::vector<PlanInstruction>& list) {
  std::vector<std::size_t> places;
  std::vector<PlanInstruction> kept;
  for (PlanInstruction& instruction : list) {
    places.push_back(kept.size());
    if (instruction.kind != Kind::kAlias)
      kept.push_back(std::move(instruction));
  }
  list = std::move(kept);
  return places;
}

/// Where each instruction is found afterwards. There are no aliases.
std::vector<std::size_t> fuse(const PlanProgram& program, std::vector<PlanInstruction>& list,
                              Readers& readers) {
  std::vector<std::size_t> places;
  std::vector<PlanInstruction> fused;
  for (std::size_t begin = 0; begin < list.size();) {
    std::size_t end = begin + 1;
    if (list[begin].kind == Kind::kElements) {
      while (end < list.size() && list[end].kind == Kind::kElements &&
             end - begin < ElementPass::kMostSteps && can_join(program, list[begin], list[end]))
        ++end;
      PlanInstruction pass = joined(program, list, begin, end, readers);
      // What nobody reads is not computed.
      const bool is_read = !pass.outputs.empty();
      places.insert(places.end(), end - begin, fused.size());
      if (is_read)
        fused.push_back(std::move(pass));
    } else {
      places.push_back(fused.size());
      fused.push_back(std::move(list[begin]));
    }
    begin = end;
  }
  list = std::move(fused);
  return places;
}

/// A block of memory that slots have one after the other.
struct Tenancy {
  std::size_t bytes = 0;
  std::size_t first = 0;
  std::size_t last = 0;
  std::size_t offset = 0;
};

class Layout {
 public:
  explicit Layout(PlanProgram& program) : program_(program), last_(program.slots.size(), kNever) {}

  void lay_out() {
    mark_outputs();
    mark_large();
    find_lives();
    share_memory();
    place();
    note_what_is_done();
  }

 private:
  static constexpr std::size_t kNever = static_cast<std::size_t>(-1);

  // Instants: those of the forward, the one in which outputs are given, those of the backward.
  const PlanInstruction& at(std::size_t index) const {
    if (index == after_forward())
      return nothing_;
    return index < after_forward() ? program_.forward[index]
                                   : program_.backward[index - after_forward() - 1];
  }
  std::size_t after_forward() const { return program_.forward.size(); }
  std::size_t count() const { return after_forward() + 1 + program_.backward.size(); }

  SlotId root(SlotId slot) const { return program_.slots[slot].root; }

  /// What outlives a run is not the arena's.
  void mark_outputs() {
    const auto mark = [&](const std::vector<SlotId>& slots) {
      for (const SlotId slot : slots) {
        if (slot != kNoSlot && program_.slots[root(slot)].memory == PlanMemory::kArena)
          program_.slots[root(slot)].memory = PlanMemory::kOutput;
      }
    };
    mark(program_.outputs);
    mark(program_.input_gradients);
    for (PlanSlot& slot : program_.slots)
      slot.memory = program_.slots[slot.root].memory;
  }

  /// Kernels that allocate take what they need when they run, so a block that held all large values
  /// as well would come on top of it. Allocating these costs little beside computing them.
  void mark_large() {
    constexpr std::size_t kLarge = std::size_t{1} << 14;
    const auto allocates = [](const PlanInstruction& instruction) {
      return instruction.kind == Kind::kCalls ||
             (instruction.kind == Kind::kOperation && instruction.operation->allocates());
    };
    if (std::none_of(program_.forward.begin(), program_.forward.end(), allocates))
      return;
    for (PlanSlot& slot : program_.slots) {
      if (program_.slots[slot.root].memory == PlanMemory::kArena &&
          bytes_of(program_.slots[slot.root].spec) >= kLarge)
        slot.memory = PlanMemory::kOwn;
    }
    for (PlanSlot& slot : program_.slots)
      slot.memory = program_.slots[slot.root].memory;
  }

  void live(SlotId slot, std::size_t index) {
    if (slot == kNoSlot)
      return;
    const SlotId of = root(slot);
    last_[of] = last_[of] == kNever ? index : std::max(last_[of], index);
  }

  void find_lives() {
    for (std::size_t index = 0; index < count(); ++index) {
      const PlanInstruction& instruction = at(index);
      for (const auto* slots : {&instruction.inputs, &instruction.outputs, &instruction.kept}) {
        for (const SlotId slot : *slots)
          live(slot, index);
      }
    }
    for (const SlotId slot : program_.outputs)
      live(slot, after_forward());
    for (const SlotId slot : program_.input_gradients)
      live(slot, count());
    // What a call gives may be a view of what it takes, and what libtorch recorded refers to it.
    for (std::size_t index = count(); index-- > 0;) {
      const PlanInstruction& instruction = at(index);
      if (instruction.kind != Kind::kCalls && instruction.kind != Kind::kCallsGradient)
        continue;
      std::size_t end = index;
      for (const SlotId slot : instruction.outputs) {
        if (slot != kNoSlot && last_[root(slot)] != kNever)
          end = std::max(end, last_[root(slot)]);
      }
      if (instruction.kind == Kind::kCalls) {
        for (std::size_t later = after_forward(); later < count(); ++later) {
          if (at(later).kind == Kind::kCallsGradient && at(later).forward == index)
            end = std::max(end, later);
        }
      }
      for (const SlotId slot : instruction.inputs)
        live(slot, end);
    }
  }

  /// A pass may write over what it is the last to read.
  void share_memory() {
    tenancy_of_.assign(program_.slots.size(), kNever);
    std::vector<bool> is_plain(program_.slots.size());  // a kernel's own, and no view
    for (std::size_t index = 0; index < count(); ++index) {
      if (index != after_forward() && at(index).kind == Kind::kElements)
        take_over(index, is_plain);
      const PlanInstruction& instruction = at(index);
      if (instruction.kind == Kind::kOperation || instruction.kind == Kind::kOperationGradient ||
          instruction.kind == Kind::kElements) {
        for (const SlotId slot : instruction.outputs) {
          if (slot != kNoSlot)
            is_plain[slot] = program_.slots[slot].memory == PlanMemory::kOwn;
        }
      }
      for (const auto* slots : {&instruction.outputs, &instruction.kept}) {
        for (const SlotId slot : *slots) {
          if (slot == kNoSlot || root(slot) != slot ||
              program_.slots[slot].memory != PlanMemory::kArena || tenancy_of_[slot] != kNever)
            continue;
          tenancy_of_[slot] = tenancies_.size();
          tenancies_.push_back({bytes_of(program_.slots[slot].spec), index, last_[slot], 0});
        }
      }
    }
  }

  void take_over(std::size_t index, std::vector<bool>& is_plain) {
    PlanInstruction& instruction = index < after_forward()
                                       ? program_.forward[index]
                                       : program_.backward[index - after_forward() - 1];
    instruction.over.assign(instruction.outputs.size(), kNoSlot);
    const std::vector<ElementPass::Step>& steps = instruction.elements->steps();
    std::vector<bool> is_taken(instruction.inputs.size());
    std::size_t written = 0;
    for (std::size_t step = 0; step < steps.size(); ++step) {
      if (!steps[step].is_wanted)
        continue;
      const std::size_t number = written++;
      const SlotId output = instruction.outputs[number];
      const PlanMemory memory = program_.slots[output].memory;
      if (memory != PlanMemory::kArena && memory != PlanMemory::kOwn)
        continue;
      for (std::size_t i = 0; i < instruction.inputs.size(); ++i) {
        const SlotId given = root(instruction.inputs[i]);
        if (is_taken[i] || last_[given] != index || is_read_after(steps, i, step) ||
            has_twin(instruction, i) ||
            bytes_of(program_.slots[given].spec) != bytes_of(program_.slots[output].spec))
          continue;
        if (is_plain[given]) {
          is_taken[i] = true;
          is_plain[output] = true;
          instruction.over[number] = instruction.inputs[i];
          for (PlanSlot& slot : program_.slots) {
            if (slot.root == output)
              slot.memory = PlanMemory::kOwn;
          }
          break;
        }
        if (memory != PlanMemory::kArena || program_.slots[given].memory != PlanMemory::kArena ||
            tenancy_of_[given] == kNever)
          continue;
        is_taken[i] = true;
        tenancy_of_[output] = tenancy_of_[given];
        Tenancy& tenancy = tenancies_[tenancy_of_[given]];
        tenancy.last = std::max(tenancy.last, last_[output]);
        break;
      }
    }
  }

  static bool is_read_after(const std::vector<ElementPass::Step>& steps, std::size_t input,
                            std::size_t step) {
    for (std::size_t later = step + 1; later < steps.size(); ++later) {
      const auto reads = [&](const ElementPass::Operand& operand) {
        return !operand.is_step && operand.index == input;
      };
      if (reads(steps[later].a) || (takes_two(steps[later].rule) && reads(steps[later].b)))
        return true;
    }
    return false;
  }

  /// Whether the same memory is given twice, in other sizes.
  bool has_twin(const PlanInstruction& instruction, std::size_t input) const {
    for (std::size_t i = 0; i < instruction.inputs.size(); ++i) {
      if (i != input && root(instruction.inputs[i]) == root(instruction.inputs[input]))
        return true;
    }
    return false;
  }

  /// The largest first, each at the lowest place that is free while it lives.
  void place() {
    std::vector<std::size_t> order(tenancies_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return tenancies_[a].bytes > tenancies_[b].bytes;
    });
    std::vector<std::size_t> placed;  // by offset
    for (const std::size_t one : order) {
      Tenancy& tenancy = tenancies_[one];
      const std::size_t bytes = (tenancy.bytes + kAlignment - 1) / kAlignment * kAlignment;
      std::size_t offset = 0;
      for (const std::size_t other : placed) {
        const Tenancy& there = tenancies_[other];
        if (there.last < tenancy.first || tenancy.last < there.first)
          continue;
        if (there.offset >= offset + bytes)
          break;
        offset = std::max(offset,
                          (there.offset + there.bytes + kAlignment - 1) / kAlignment * kAlignment);
      }
      tenancy.offset = offset;
      program_.arena_bytes = std::max(program_.arena_bytes, offset + bytes);
      placed.insert(std::upper_bound(placed.begin(), placed.end(), offset,
                                     [&](std::size_t value, std::size_t other) {
                                       return value < tenancies_[other].offset;
                                     }),
                    one);
    }
    for (PlanSlot& slot : program_.slots) {
      if (slot.memory == PlanMemory::kArena && tenancy_of_[slot.root] != kNever)
        slot.offset = tenancies_[tenancy_of_[slot.root]].offset;
    }
  }

  void note_what_is_done() {
    for (SlotId slot = 0; slot < program_.slots.size(); ++slot) {
      const PlanSlot& planned = program_.slots[slot];
      const std::size_t last = last_[planned.root];
      if (last < count() && last != after_forward())
        program_.slots[slot].last_use = last < after_forward() ? last : last - 1;
      const bool is_placed =
          planned.memory == PlanMemory::kArena && tenancy_of_[planned.root] != kNever;
      if (!is_placed)
        program_.passing.push_back(slot);
      if (last == after_forward() && planned.memory == PlanMemory::kOutput)
        program_.handed_out.push_back(slot);
      if (last >= count() || last == after_forward())
        continue;
      PlanInstruction& instruction = last < after_forward()
                                         ? program_.forward[last]
                                         : program_.backward[last - after_forward() - 1];
      (is_placed ? instruction.done_in_arena : instruction.done).push_back(slot);
    }
  }

  PlanProgram& program_;
  const PlanInstruction nothing_ = {};
  // Of roots, by the number of an instruction.
  std::vector<std::size_t> last_;
  std::vector<Tenancy> tenancies_;
  std::vector<std::size_t> tenancy_of_;  // of roots
};

}  // namespace

std::size_t bytes_of(const TensorSpec& spec) {
  std::size_t bytes = c10::elementSize(spec.dtype);
  for (const std::int64_t size : spec.sizes)
    bytes *= static_cast<std::size_t>(size);
  return bytes;
}

void fuse_elements(PlanProgram& program) {
  for (const auto* list : {&program.forward, &program.backward}) {
    for (const PlanInstruction& instruction : *list)
      program.element_steps += instruction.kind == Kind::kElements ? 1 : 0;
  }
  const std::vector<std::size_t> without_aliases = drop_aliases(program.forward);
  Readers readers(program);
  const std::vector<std::size_t> places = fuse(program, program.forward, readers);
  for (PlanInstruction& instruction : program.backward) {
    if (instruction.kind == Kind::kOperationGradient || instruction.kind == Kind::kCallsGradient)
      instruction.forward = places[without_aliases[instruction.forward]];
  }
  fuse(program, program.backward, readers);
}

void lay_out(PlanProgram& program) {
  Layout(program).lay_out();
}

}  // namespace treadle::graph

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include <treadle/plan/op.h>
#include <treadle/plan/passes.h>
#include <treadle/plan/program.h>

// Decides where values lie and for how long.
//
// Time is counted in instructions: those of the forward, one instant in which outputs are handed
// out (after_forward()), and those of the backward. A root lives from the instruction that writes
// it to the last one that reads it in any shape. Roots whose lives do not overlap may share memory.
//
// The arena is packed greedily: the largest value first, each at the lowest offset that is free
// during its life. A fused kernel may write over an input that it is the last to read; both are
// then one tenancy of a longer life.
//
// Not in the arena: inputs (the caller's), outputs and gradients of inputs (they outlive the run),
// results of kernels that allocate, and large values in programs that have such kernels.

namespace treadle::plan {
namespace {

using Kind = Instruction::Kind;

/// Slots begin at multiples of it: whole cache lines, and any alignment that vector units need.
constexpr std::size_t kAlignment = 256;

/// Memory that slots occupy one after the other: a life, a size, and the offset it gets.
struct Tenancy {
  std::size_t bytes = 0;
  std::size_t first = 0;
  std::size_t last = 0;
  std::size_t offset = 0;
};

class Layout {
 public:
  explicit Layout(Program& program) : program_(program), last_(program.slots.size(), kNever) {}

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

  // The instruction at an instant; none at after_forward().
  const Instruction& at(std::size_t index) const {
    if (index == after_forward())
      return nothing_;
    return index < after_forward() ? program_.forward[index]
                                   : program_.backward[index - after_forward() - 1];
  }
  std::size_t after_forward() const { return program_.forward.size(); }
  std::size_t count() const { return after_forward() + 1 + program_.backward.size(); }

  SlotId root(SlotId slot) const { return program_.slots[slot].root; }

  /// Values that outlive a run are not in the arena.
  void mark_outputs() {
    const auto mark = [&](const std::vector<SlotId>& slots) {
      for (const SlotId slot : slots) {
        if (slot != kNoSlot && program_.slots[root(slot)].memory == Memory::kArena)
          program_.slots[root(slot)].memory = Memory::kOutput;
      }
    };
    mark(program_.outputs);
    mark(program_.input_gradients);
    for (Slot& slot : program_.slots)
      slot.memory = program_.slots[slot.root].memory;
  }

  /// Kernels that allocate take working memory while they run. An arena of all large values would
  /// come on top of that; allocating these costs little beside computing them.
  void mark_large() {
    constexpr std::size_t kLarge = std::size_t{1} << 14;
    const auto allocates = [](const Instruction& instruction) {
      return instruction.kind == Kind::kCalls ||
             (instruction.kind == Kind::kOperation && instruction.operation->allocates());
    };
    if (std::none_of(program_.forward.begin(), program_.forward.end(), allocates))
      return;
    for (Slot& slot : program_.slots) {
      if (program_.slots[slot.root].memory == Memory::kArena &&
          bytes_of(program_.slots[slot.root].spec) >= kLarge)
        slot.memory = Memory::kOwn;
    }
    for (Slot& slot : program_.slots)
      slot.memory = program_.slots[slot.root].memory;
  }

  /// Extends the life of a slot's root to an instant.
  void live(SlotId slot, std::size_t index) {
    if (slot == kNoSlot)
      return;
    const SlotId of = root(slot);
    last_[of] = last_[of] == kNever ? index : std::max(last_[of], index);
  }

  void find_lives() {
    for (std::size_t index = 0; index < count(); ++index) {
      const Instruction& instruction = at(index);
      for (const auto* slots : {&instruction.inputs, &instruction.outputs, &instruction.kept}) {
        for (const SlotId slot : *slots)
          live(slot, index);
      }
    }
    for (const SlotId slot : program_.outputs)
      live(slot, after_forward());
    for (const SlotId slot : program_.input_gradients)
      live(slot, count());
    // Results of a call may be views of its inputs, and autograd's record refers to the inputs
    // until the call's gradient has run. So inputs live as long as results and gradient. From the
    // end, because the results of one call are inputs of the next.
    for (std::size_t index = count(); index-- > 0;) {
      const Instruction& instruction = at(index);
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

  /// Assigns tenancies. Fused kernels first try to take over an input's memory.
  void share_memory() {
    tenancy_of_.assign(program_.slots.size(), kNever);
    // Own memory that is not a view of other memory: safe to write over.
    std::vector<bool> is_plain(program_.slots.size());
    for (std::size_t index = 0; index < count(); ++index) {
      if (index != after_forward() && at(index).kind == Kind::kFusedKernel)
        take_over(index, is_plain);
      const Instruction& instruction = at(index);
      if (instruction.kind == Kind::kOperation || instruction.kind == Kind::kOperationGradient ||
          instruction.kind == Kind::kFusedKernel) {
        for (const SlotId slot : instruction.outputs) {
          if (slot != kNoSlot)
            is_plain[slot] = program_.slots[slot].memory == Memory::kOwn;
        }
      }
      for (const auto* slots : {&instruction.outputs, &instruction.kept}) {
        for (const SlotId slot : *slots) {
          if (slot == kNoSlot || root(slot) != slot ||
              program_.slots[slot].memory != Memory::kArena || tenancy_of_[slot] != kNever)
            continue;
          tenancy_of_[slot] = tenancies_.size();
          tenancies_.push_back({bytes_of(program_.slots[slot].spec), index, last_[slot], 0});
        }
      }
    }
  }

  /// Gives outputs of a fused kernel the memory of inputs that nothing reads afterwards. Safe
  /// because a kernel reads a block of its inputs before it writes the same block; not for an input
  /// that a later step reads, or that the kernel is given twice.
  void take_over(std::size_t index, std::vector<bool>& is_plain) {
    Instruction& instruction = index < after_forward()
                                   ? program_.forward[index]
                                   : program_.backward[index - after_forward() - 1];
    instruction.over.assign(instruction.outputs.size(), kNoSlot);
    const std::vector<FusedKernel::Step>& steps = instruction.kernel->steps();
    std::vector<bool> is_taken(instruction.inputs.size());
    std::size_t written = 0;
    for (std::size_t step = 0; step < steps.size(); ++step) {
      if (!steps[step].is_wanted)
        continue;
      const std::size_t number = written++;
      const SlotId output = instruction.outputs[number];
      const Memory memory = program_.slots[output].memory;
      if (memory != Memory::kArena && memory != Memory::kOwn)
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
          for (Slot& slot : program_.slots) {
            if (slot.root == output)
              slot.memory = Memory::kOwn;
          }
          break;
        }
        if (memory != Memory::kArena || program_.slots[given].memory != Memory::kArena ||
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

  static bool is_read_after(const std::vector<FusedKernel::Step>& steps, std::size_t input,
                            std::size_t step) {
    for (std::size_t later = step + 1; later < steps.size(); ++later) {
      const auto reads = [&](const FusedKernel::Operand& operand) {
        return !operand.is_step && operand.index == input;
      };
      if (reads(steps[later].a) || (takes_two(steps[later].rule) && reads(steps[later].b)))
        return true;
    }
    return false;
  }

  /// Whether the kernel is given the same memory twice, in different shapes.
  bool has_twin(const Instruction& instruction, std::size_t input) const {
    for (std::size_t i = 0; i < instruction.inputs.size(); ++i) {
      if (i != input && root(instruction.inputs[i]) == root(instruction.inputs[input]))
        return true;
    }
    return false;
  }

  /// Packs the arena: the largest first, each at the lowest offset that is free during its life.
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
    for (Slot& slot : program_.slots) {
      if (slot.memory == Memory::kArena && tenancy_of_[slot.root] != kNever)
        slot.offset = tenancies_[tenancy_of_[slot.root]].offset;
    }
  }

  /// Tells every instruction which slots it is the last to need, and the program which slots a run
  /// fills anew (everything that has no place in the arena).
  void note_what_is_done() {
    for (SlotId slot = 0; slot < program_.slots.size(); ++slot) {
      const Slot& planned = program_.slots[slot];
      const std::size_t last = last_[planned.root];
      if (last < count() && last != after_forward())
        program_.slots[slot].last_use = last < after_forward() ? last : last - 1;
      const bool is_placed =
          planned.memory == Memory::kArena && tenancy_of_[planned.root] != kNever;
      if (!is_placed)
        program_.passing.push_back(slot);
      if (last == after_forward() && planned.memory == Memory::kOutput)
        program_.handed_out.push_back(slot);
      if (last >= count() || last == after_forward())
        continue;
      Instruction& instruction = last < after_forward()
                                     ? program_.forward[last]
                                     : program_.backward[last - after_forward() - 1];
      (is_placed ? instruction.done_in_arena : instruction.done).push_back(slot);
    }
  }

  Program& program_;
  const Instruction nothing_ = {};
  // Of roots, by the number of an instruction.
  std::vector<std::size_t> last_;
  std::vector<Tenancy> tenancies_;
  std::vector<std::size_t> tenancy_of_;  // of roots
};

}  // namespace

void lay_out(Program& program) {
  Layout(program).lay_out();
}

}  // namespace treadle::plan

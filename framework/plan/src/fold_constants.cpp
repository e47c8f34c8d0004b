#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <treadle/plan/folding.h>

#include <treadle/plan/passes.h>
#include <treadle/plan/program.h>

// Folds operations that scale and shift channels (batch norm in evaluation) into the operation
// before them. Only for programs of inference: the folded weights are copies, so
// Program::still_holds() then also compares libtorch's count of writes. Results change by rounding.
//
// An operation is folded only if nothing else reads the value between the two, in any shape:
// readers are counted per root. A chain folds step by step, because the merged operation becomes
// the maker of the folded one's output.

namespace treadle::plan {
namespace {

using Kind = Instruction::Kind;

/// Readers of each root: instructions and outputs of the program.
std::vector<std::size_t> readers_of_roots(const Program& program) {
  std::vector<std::size_t> readers(program.slots.size());
  const auto count = [&](const std::vector<SlotId>& slots) {
    for (const SlotId slot : slots) {
      if (slot != kNoSlot)
        ++readers[program.slots[slot].root];
    }
  };
  for (const Instruction& instruction : program.forward)
    count(instruction.inputs);
  count(program.outputs);
  return readers;
}

std::optional<ChannelMap> channel_map_of(const Instruction& instruction) {
  if (instruction.kind != Kind::kOperation)
    return std::nullopt;
  const auto* maps = dynamic_cast<const MapsChannels*>(instruction.operation.get());
  return maps == nullptr ? std::nullopt : maps->channel_map();
}

/// Notes a fold for people; once for all rounds of a loop.
void note_fold(Program& program, const Instruction& folded, const Instruction& into) {
  FoldInfo info{std::string(folded.operation->name()), program.sites[folded.site].node,
                program.sites[into.site].node};
  const bool is_known =
      std::any_of(program.folded.begin(), program.folded.end(), [&](const FoldInfo& known) {
        return known.operation == info.operation && known.node == info.node &&
               known.into == info.into;
      });
  if (!is_known)
    program.folded.push_back(std::move(info));
}

}  // namespace

void fold_constants(Program& program) {
  const std::vector<std::size_t> readers = readers_of_roots(program);
  std::vector<std::size_t> maker(program.slots.size(), program.forward.size());
  std::vector<bool> is_folded(program.forward.size());
  for (std::size_t index = 0; index < program.forward.size(); ++index) {
    Instruction& instruction = program.forward[index];
    for (const SlotId slot : instruction.outputs)
      maker[slot] = index;
    const auto map = channel_map_of(instruction);
    if (!map)
      continue;
    const SlotId between = instruction.inputs[0];
    const SlotId output = instruction.outputs[0];
    if (maker[between] == program.forward.size() || readers[program.slots[between].root] != 1 ||
        program.slots[between].spec.dtype != program.slots[output].spec.dtype)
      continue;
    Instruction& before = program.forward[maker[between]];
    if (before.kind != Kind::kOperation)
      continue;
    const auto* takes = dynamic_cast<const TakesChannelMap*>(before.operation.get());
    auto both = takes == nullptr ? nullptr : takes->followed_by(*map, program.slots[between].spec);
    if (both == nullptr)
      continue;
    note_fold(program, instruction, before);
    program.slots[output].memory = both->allocates() ? Memory::kOwn : Memory::kArena;
    program.slots[between].memory = Memory::kOwn;  // never written again, so not in the arena
    before.operation = std::move(both);
    before.outputs = {output};
    maker[output] = maker[between];
    is_folded[index] = true;
  }
  std::vector<Instruction> left;
  for (std::size_t index = 0; index < program.forward.size(); ++index) {
    if (!is_folded[index])
      left.push_back(std::move(program.forward[index]));
  }
  program.forward = std::move(left);
}

}  // namespace treadle::plan

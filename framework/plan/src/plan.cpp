#include <treadle/plan/plan.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <set>
#include <utility>

#include <treadle/plan/op.h>
#include <treadle/plan/program.h>

namespace treadle::plan {
namespace {

using Kind = Instruction::Kind;

std::string operation_of(const Instruction& instruction) {
  std::string text;
  switch (instruction.kind) {
    case Kind::kOperation:
      return std::string(instruction.operation->name());
    case Kind::kOperationGradient:
      return std::string(instruction.operation->name()) + "_gradient";
    case Kind::kFusedKernel:
      for (const FusedKernel::Step& step : instruction.kernel->steps())
        text += (text.empty() ? "" : " ") + std::string(name_of(step.rule));
      return text;
    case Kind::kCalls:
      return "call";
    case Kind::kCallsGradient:
      return "call_gradient";
    case Kind::kDrawSeed:
      return "draw_seed";
    case Kind::kEnterBranch:
      return "enter_branch";
    case Kind::kLeaveBranch:
      return "leave_branch";
    case Kind::kAlias:
      return "alias";
  }
  return text;
}

std::vector<std::size_t> there(const std::vector<SlotId>& slots) {
  std::vector<std::size_t> found;
  std::copy_if(slots.begin(), slots.end(), std::back_inserter(found),
               [](SlotId slot) { return slot != kNoSlot; });
  return found;
}

std::string joined(const std::vector<std::size_t>& numbers) {
  std::string text;
  for (const std::size_t number : numbers)
    text += (text.empty() ? "" : " ") + std::to_string(number);
  return text;
}

}  // namespace

Plan::Plan(std::shared_ptr<const Program> program) : program_(std::move(program)) {}

std::vector<InstructionInfo> Plan::instructions() const {
  std::vector<InstructionInfo> infos;
  const auto add = [&](const std::vector<Instruction>& list, bool is_backward) {
    for (const Instruction& instruction : list) {
      infos.push_back({operation_of(instruction), program_->sites[instruction.site].node,
                       there(instruction.inputs), there(instruction.outputs), is_backward});
    }
  };
  add(program_->forward, false);
  add(program_->backward, true);
  return infos;
}

std::vector<SlotInfo> Plan::slots() const {
  std::vector<SlotInfo> infos;
  for (const Slot& slot : program_->slots) {
    infos.push_back(
        {slot.spec, slot.memory, slot.root, slot.offset, bytes_of(slot.spec), slot.last_use});
  }
  return infos;
}

std::vector<std::size_t> Plan::input_slots() const {
  return there(program_->inputs);
}
std::vector<std::size_t> Plan::output_slots() const {
  return there(program_->outputs);
}
std::size_t Plan::arena_bytes() const {
  return program_->arena_bytes;
}

std::size_t Plan::unshared_bytes() const {
  std::size_t bytes = 0;
  for (SlotId slot = 0; slot < program_->slots.size(); ++slot) {
    const Slot& planned = program_->slots[slot];
    if (planned.memory == Memory::kArena && planned.root == slot)
      bytes += bytes_of(planned.spec);
  }
  return bytes;
}

std::vector<CallInfo> Plan::calls() const {
  return program_->calls;
}

std::vector<FoldInfo> Plan::folds() const {
  return program_->folded;
}

std::size_t Plan::dynamic_nodes() const {
  std::set<std::string> nodes;
  for (const CallInfo& call : program_->calls) {
    if (call.is_dynamic)
      nodes.insert(call.node);
  }
  return nodes.size();
}

std::size_t Plan::elementwise_ops() const {
  return program_->elementwise_ops;
}

std::size_t Plan::fused_kernels() const {
  const auto is_pass = [](const Instruction& instruction) {
    return instruction.kind == Kind::kFusedKernel;
  };
  return static_cast<std::size_t>(
      std::count_if(program_->forward.begin(), program_->forward.end(), is_pass) +
      std::count_if(program_->backward.begin(), program_->backward.end(), is_pass));
}

bool Plan::records_gradients() const {
  return program_->records_gradients;
}

std::string Plan::text() const {
  using Row = std::array<std::string, 6>;
  std::vector<Row> rows{{"step", "operation", "node", "takes", "gives", "sizes"}};
  // Other names for the same numbers mean nothing here: what an instruction gave is found again.
  const auto roots = [&](std::vector<std::size_t> slots) {
    for (std::size_t& slot : slots)
      slot = program_->slots[slot].root;
    return slots;
  };
  for (const InstructionInfo& instruction : instructions()) {
    rows.push_back({std::to_string(rows.size() - 1), instruction.operation, instruction.node,
                    joined(roots(instruction.inputs)), joined(instruction.outputs),
                    instruction.outputs.empty()
                        ? ""
                        : program_->slots[instruction.outputs.front()].spec.text()});
  }
  std::array<std::size_t, 6> widths{};
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += row[i] + std::string(widths[i] + 2 - row[i].size(), ' ');
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  text += std::to_string(arena_bytes()) + " bytes of memory for values; without sharing " +
          std::to_string(unshared_bytes()) + "\n";
  for (const FoldInfo& fold : program_->folded) {
    text += "folded: the " + fold.operation + " of \"" + fold.node + "\", into the weights of \"" +
            fold.into + "\"\n";
  }
  for (const CallInfo& call : program_->calls) {
    text += "called" + std::string(call.is_dynamic ? ", each time anew" : "") + ": \"" + call.node +
            "\", because " + call.why + "\n";
  }
  return text;
}

}  // namespace treadle::plan

#include <treadle/graph/plan_run.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <c10/core/GradMode.h>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/graph/graph.h>
#include <treadle/plan/program.h>
#include <treadle/plan/run.h>

#include "compile/run_plan.h"
#include "forward/failure.h"
#include "run/forward_scope.h"
#include "run/run_graph.h"
#include "run/spare_state.h"

// A plan packs values into one block, where a value is gone as soon as its last reader has run. The
// run of this file has no block: room_for() (run_plan.cpp) allocates each value by itself, and
// nothing frees it.

namespace treadle::graph {

struct PlanRun::Data {
  Data(const Graph& graph, std::shared_ptr<const plan::Program> program)
      : graph(graph), program(std::move(program)), state(graph) {
    run.slots.resize(this->program->slots.size());
    run.absent.resize(this->program->slots.size());
    run.tapes.resize(this->program->tapes);
  }

  bool is_written(plan::SlotId slot) const {
    return run.slots[slot].defined() || run.slots[program->slots[slot].root].defined();
  }

  /// Lets a value go, under all its names: what holds it elsewhere keeps it.
  void forget(plan::SlotId slot) {
    for (plan::SlotId other = 0; other < run.slots.size(); ++other) {
      if (program->slots[other].root == slot)
        run.slots[other].reset();
    }
  }

  void expect_slot(std::size_t slot) const {
    if (slot >= run.slots.size()) {
      throw DataError("the plan has " + std::to_string(run.slots.size()) +
                      " slots, numbered from 0, got " + std::to_string(slot));
    }
  }

  void expect_inputs(std::size_t index) const {
    const plan::Instruction& instruction = program->forward[index];
    for (const plan::SlotId slot : instruction.inputs) {
      if (slot == plan::kNoSlot || is_written(slot))
        continue;
      throw DataError("instruction " + std::to_string(index) + ", of node " +
                      quote_text(program->sites[instruction.site].node) + ", reads slot " +
                      std::to_string(slot) +
                      ", which nothing has written: load it, or run the instructions before");
    }
  }

  void carry_out(std::size_t index) {
    plan::Instruction instruction = program->forward[index];
    expect_inputs(index);
    instruction.over.clear();  // its inputs stay
    for (const auto* written : {&instruction.outputs, &instruction.kept}) {
      for (const plan::SlotId slot : *written) {
        if (slot != plan::kNoSlot)
          forget(slot);
      }
    }
    if (instruction.kind == plan::Instruction::Kind::kCalls)
      run.tapes[instruction.tape] = {};
    run_instruction(*program, instruction, run);
  }

  /// Enters the branches that stand around an instruction, whose random streams it draws from.
  void enter_branches_around(std::size_t index) {
    std::vector<std::size_t> open;
    for (std::size_t i = 0; i < index; ++i) {
      if (program->forward[i].kind == plan::Instruction::Kind::kEnterBranch)
        open.push_back(i);
      if (program->forward[i].kind == plan::Instruction::Kind::kLeaveBranch)
        open.pop_back();
    }
    run.seeds.resize(program->seeds);
    for (const std::size_t enter : open)
      run_instruction(*program, program->forward[enter], run);
  }

  const Graph& graph;
  std::shared_ptr<const plan::Program> program;
  SpareState state;
  plan::Run run;
};

PlanRun::PlanRun(const Graph& graph, const plan::Plan& plan)
    : data_(std::make_unique<Data>(graph, plan.program())) {}

PlanRun::~PlanRun() = default;

void PlanRun::load(const Inputs& inputs) {
  std::vector<plan::SlotId> slots;
  for (const plan::SlotId slot : data_->program->inputs) {
    if (slot != plan::kNoSlot)
      slots.push_back(slot);
  }
  if (slots.size() != inputs.size()) {
    throw DataError("the plan takes " + std::to_string(slots.size()) + " inputs, got " +
                    std::to_string(inputs.size()));
  }
  for (std::size_t i = 0; i < slots.size(); ++i)
    load(slots[i], inputs[i]);
}

void PlanRun::load(std::size_t slot, const at::Tensor& value) {
  data_->expect_slot(slot);
  const plan::Slot& planned = data_->program->slots[slot];
  const TensorSpec given = value.defined() ? TensorSpec::of(value) : TensorSpec::absent();
  if (given != planned.spec || value.device() != data_->program->device) {
    throw DataError("slot " + std::to_string(slot) + " of the plan holds " + planned.spec.text() +
                    " on " + data_->program->device.str() + ", got " + given.text() +
                    (value.defined() ? " on " + value.device().str() : ""));
  }
  data_->forget(planned.root);
  data_->run.slots[planned.root] =
      value.detach().reshape(data_->program->slots[planned.root].spec.sizes);
}

void PlanRun::run(std::size_t begin, std::size_t end) {
  const plan::Program& program = *data_->program;
  if (begin > end || end > program.forward.size()) {
    throw DataError("the forward of the plan has " + std::to_string(program.forward.size()) +
                    " instructions, so none from " + std::to_string(begin) + " to " +
                    std::to_string(end));
  }
  if (!program.still_holds()) {
    throw TrainingError(
        "parameters or modes of the graph are no longer those that the plan was made for; compile "
        "it again");
  }
  const at::NoGradGuard no_gradients;
  const ForwardScope scope;
  const GraphCallContext context((*data_->state).data(), scope);
  plan::Run& run = data_->run;
  try {
    if (begin == 0 && end > 0 && data_->is_written(program.inputs.front()))
      tell_beginning(data_->graph.impl(), run.slots[program.inputs.front()], (*data_->state).data(),
                     scope);
    run.context = &context;
    data_->enter_branches_around(begin);
    for (std::size_t i = begin; i < end; ++i)
      data_->carry_out(i);
  } catch (const Failure& failure) {
    run.context = nullptr;
    run.leave_branches();
    failure.raise();
  } catch (...) {
    run.context = nullptr;
    run.leave_branches();
    throw;
  }
  run.context = nullptr;
  run.leave_branches();
}

void PlanRun::run() {
  run(0, data_->program->forward.size());
}

at::Tensor PlanRun::value(std::size_t slot) const {
  data_->expect_slot(slot);
  if (!data_->is_written(slot))
    throw DataError("nothing has written slot " + std::to_string(slot) + " of the plan");
  return value_of(*data_->program, data_->run, slot);
}

}  // namespace treadle::graph

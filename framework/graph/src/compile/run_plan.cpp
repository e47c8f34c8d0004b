#include "compile/run_plan.h"

#include <algorithm>
#include <array>
#include <exception>
#include <optional>
#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>
#include <c10/util/SmallVector.h>
#include <torch/csrc/autograd/autograd.h>

#include <treadle/base/error.h>
#include <treadle/base/random.h>
#include <treadle/plan/op.h>
#include <treadle/tensor/task_random.h>

#include "forward/failure.h"
#include "run/run_graph.h"

// Runs instructions.
//
// Gradients that do not exist (Run::absent) follow autograd: a sum with one of its terms missing is
// the other term, any other gradient of nothing is nothing, and a parameter that nothing arrived at
// keeps an undefined grad().
//
// Sums of parameters' gradients (rule 5 of run/gradient_order.h). The first instruction that adds
// to a parameter writes into zeros. A later one computes its gradient into zeros of its own, which
// are then added: a kernel that accumulates (addmm with beta 1) rounds otherwise than one whose
// result is added. Opaque calls get the sum so far as the gradient of the parameter itself, so that
// autograd adds each use within to it, as in one record of all. The last instruction hands a
// complete sum over to grad() and frees it.
//
// Calls of a stretch record into one Tape between detached leaves and results. Kernels of
// operations run below autograd: nothing is recorded, and in-place writes are checked by nobody.

namespace treadle::graph {
namespace {

at::TensorOptions options_of(const plan::Program& program, plan::SlotId slot) {
  return at::TensorOptions(program.slots[slot].spec.dtype).device(program.device);
}

/// The memory of a slot that is about to be written; allocated where the run has none for it.
at::Tensor& room_for(const plan::Program& program, plan::Run& run, plan::SlotId slot) {
  at::Tensor& tensor = run.slots[slot];
  if (!tensor.defined())
    tensor = at::empty(program.slots[slot].spec.sizes, options_of(program, slot));
  return tensor;
}

void mark_absent(plan::Run& run, const std::vector<plan::SlotId>& slots) {
  for (const plan::SlotId slot : slots) {
    if (slot != plan::kNoSlot)
      run.absent[slot] = 1;
  }
}

void run_operation(const plan::Program& program, const plan::Instruction& instruction,
                   plan::Run& run) {
  const at::AutoDispatchBelowADInplaceOrView no_recording;
  c10::SmallVector<at::Tensor, 4> inputs;
  for (const plan::SlotId slot : instruction.inputs)
    inputs.push_back(value_of(program, run, slot));
  const bool allocates = instruction.operation->allocates();
  c10::SmallVector<at::Tensor, 2> kept(instruction.kept.size());
  at::Tensor output;
  if (!allocates) {
    output = room_for(program, run, instruction.outputs[0]);
    for (std::size_t i = 0; i < kept.size(); ++i)
      kept[i] = room_for(program, run, instruction.kept[i]);
  }
  instruction.operation->forward({inputs.data(), inputs.size()}, output,
                                 {kept.data(), kept.size()});
  if (allocates) {
    run.slots[instruction.outputs[0]] = output.contiguous();
    for (std::size_t i = 0; i < kept.size(); ++i)
      run.slots[instruction.kept[i]] = std::move(kept[i]);
  }
}

/// The slow way, step by step, where some inputs are absent gradients.
void run_fused_with_gaps(const plan::Program& program, const plan::Instruction& instruction,
                         plan::Run& run) {
  const std::vector<plan::FusedKernel::Step>& steps = instruction.kernel->steps();
  std::vector<at::Tensor> results;
  std::size_t written = 0;
  for (const plan::FusedKernel::Step& step : steps) {
    const auto operand = [&](const plan::FusedKernel::Operand& where) -> at::Tensor {
      if (where.is_step)
        return results[where.index];
      const plan::SlotId slot = instruction.inputs[where.index];
      return is_absent(program, run, slot) ? at::Tensor() : value_of(program, run, slot);
    };
    const at::Tensor a = operand(step.a);
    const at::Tensor b = takes_two(step.rule) ? operand(step.b) : a;
    at::Tensor result;
    if (a.defined() && b.defined()) {
      plan::FusedKernel::Step alone = step;
      alone.a = {false, 0};
      alone.b = {false, 1};
      alone.is_wanted = true;
      std::vector<at::Tensor> out{at::empty_like(a, at::MemoryFormat::Contiguous)};
      const std::array given{a, b};
      plan::FusedKernel({alone}).run(given, out);
      result = out.front();
    } else if (step.rule == plan::ElementwiseRule::kAdd && (a.defined() || b.defined())) {
      // A copy: the kernel may write over the input before later steps read the sum.
      result = a.defined() ? a.clone() : b.clone();
    }
    results.push_back(result);
    if (!step.is_wanted)
      continue;
    const plan::SlotId slot = instruction.outputs[written++];
    if (result.defined()) {
      room_for(program, run, slot).copy_(result);
    } else {
      run.absent[slot] = 1;
    }
  }
}

void run_fused(const plan::Program& program, const plan::Instruction& instruction, plan::Run& run) {
  const at::AutoDispatchBelowADInplaceOrView no_recording;
  const bool has_gaps =
      std::any_of(instruction.inputs.begin(), instruction.inputs.end(),
                  [&](plan::SlotId slot) { return is_absent(program, run, slot); });
  if (has_gaps)
    return run_fused_with_gaps(program, instruction, run);
  c10::SmallVector<at::Tensor, 4> given;
  for (const plan::SlotId slot : instruction.inputs)
    given.push_back(value_of(program, run, slot));
  c10::SmallVector<at::Tensor, 4> wanted;
  for (std::size_t i = 0; i < instruction.outputs.size(); ++i) {
    const plan::SlotId over = instruction.over.empty() ? plan::kNoSlot : instruction.over[i];
    // Not if a kernel that allocates chose other strides.
    if (over != plan::kNoSlot && value_of(program, run, over).is_contiguous())
      run.slots[instruction.outputs[i]] =
          value_of(program, run, over).view(program.slots[instruction.outputs[i]].spec.sizes);
    wanted.push_back(room_for(program, run, instruction.outputs[i]));
  }
  instruction.kernel->run({given.data(), given.size()}, {wanted.data(), wanted.size()});
}

at::Tensor source_of(const plan::CallStep::Source& source, const plan::Tape& tape) {
  if (source.index == plan::kNoSlot)
    return {};
  return source.is_call ? tape.results[source.index] : tape.leaves[source.index];
}

/// Notes when the node that `site` belongs to began and ended, where a profile is asked for.
class Timed {
 public:
  Timed(const plan::Program& program, std::size_t site, const plan::Run& run) {
    const std::optional<std::size_t>& place = program.sites[site].top_place;
    if (run.context == nullptr || !place)
      return;
    GraphState::Data& state = static_cast<const GraphCallContext*>(run.context)->state;
    if (state.times.empty())
      return;
    state_ = &state;
    place_ = *place;
    begin_time(state, place_);
  }
  ~Timed() {
    if (state_ != nullptr)
      end_time(*state_, place_);
  }
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;

 private:
  GraphState::Data* state_ = nullptr;  // null: nothing is timed
  std::size_t place_ = 0;
};

/// The inputs of a stretch as leaves of its record. Calls join a stretch one by one while the plan
/// is made, so leaves may be added later.
void add_leaves(const plan::Program& program, const plan::Instruction& stretch, plan::Run& run) {
  plan::Tape& tape = run.tapes[stretch.tape];
  while (tape.leaves.size() < stretch.inputs.size()) {
    const plan::SlotId slot = stretch.inputs[tape.leaves.size()];
    at::Tensor leaf = value_of(program, run, slot).detach();
    if (program.slots[slot].needs_gradient)
      leaf.set_requires_grad(true);
    tape.leaves.push_back(std::move(leaf));
  }
}

void keep_result(const plan::Program& program, const plan::Instruction& stretch, std::size_t index,
                 plan::Run& run) {
  const plan::SlotId slot = stretch.outputs[index];
  at::Tensor& result = run.tapes[stretch.tape].results[index];
  const plan::Slot& planned = program.slots[slot];
  // In the run that makes the plan the slot has no spec yet.
  if (!planned.spec.is_absent() && result.sizes() != at::IntArrayRef(planned.spec.sizes)) {
    throw DataError("it gave " + TensorSpec::of(result).text() + " where a plan was made for " +
                    planned.spec.text() +
                    "; sizes that depend on numbers need \"execution\": \"dynamic\"");
  }
  run.slots[slot] = result.requires_grad() ? result.detach() : result;
}

/// Runs a call under a record of its own and puts the results into the stretch's slots.
void run_call(const plan::Program& program, const plan::CallStep& step,
              const plan::Instruction& stretch, plan::Run& run) {
  const Timed timed(program, step.site, run);
  try {
    add_leaves(program, stretch, run);
    plan::Tape& tape = run.tapes[stretch.tape];
    c10::SmallVector<at::Tensor, 4> inputs;
    for (const plan::CallStep::Source& source : step.inputs)
      inputs.push_back(source_of(source, tape));
    const Inputs given{inputs.data(), inputs.size()};
    const std::size_t before = tape.results.size();
    {
      const at::AutoGradMode gradients(program.records_gradients);
      step.call->call(given, run, tape.results);
    }
    for (std::size_t i = before; i < tape.results.size(); ++i) {
      try {
        keep_result(program, stretch, i, run);
      } catch (...) {
        step.call->rethrow_from_result(i - before, given);
      }
    }
  } catch (...) {
    rethrow_from(program.sites[step.site]);
  }
}

/// Zeros, where nothing arrived yet; undefined for a parameter that is frozen.
const at::Tensor& sum_of(const plan::Program& program, plan::Run& run, std::size_t parameter) {
  at::Tensor& sum = run.sums[parameter];
  if (!sum.defined() && program.parameters[parameter].requires_grad())
    sum = at::zeros_like(program.parameters[parameter]);
  return sum;
}

/// Adds sums that are complete to the gradients that are there, and lets their memory go.
void hand_sums_over(const plan::Program& program, const plan::Instruction& instruction,
                    plan::Run& run) {
  if (!run.hands_sums_over)
    return;
  for (std::size_t i = 0; i < instruction.parameters.size(); ++i) {
    at::Tensor& sum = run.sums[instruction.parameters[i]];
    const at::Tensor& gradient = program.parameters[instruction.parameters[i]].grad();
    if (!instruction.is_last_to_add[i] || run.arrived[instruction.parameters[i]] == 0 ||
        !gradient.defined() || sum.is_same(gradient))
      continue;
    gradient.add_(sum);
    sum.reset();
  }
}

void run_operation_gradient(const plan::Program& program, const plan::Instruction& instruction,
                            plan::Run& run) {
  if (is_absent(program, run, instruction.inputs[0]))
    return mark_absent(run, instruction.outputs);
  const at::AutoDispatchBelowADInplaceOrView no_recording;
  const plan::Instruction& forward = program.forward[instruction.forward];
  const PlanOp& operation = *instruction.operation;
  const PlanOp::Reads reads = operation.backward_reads();
  c10::SmallVector<at::Tensor, 4> inputs(forward.inputs.size());
  if (reads.inputs) {
    for (std::size_t i = 0; i < inputs.size(); ++i)
      inputs[i] = value_of(program, run, forward.inputs[i]);
  }
  const at::Tensor output =
      reads.output ? value_of(program, run, forward.outputs[0]) : at::Tensor();
  c10::SmallVector<at::Tensor, 2> kept;
  for (const plan::SlotId slot : forward.kept)
    kept.push_back(run.slots[slot]);
  c10::SmallVector<at::Tensor, 4> of_inputs(instruction.outputs.size());
  const bool allocates = operation.allocates();
  c10::SmallVector<bool, 8> wanted;
  for (std::size_t i = 0; i < of_inputs.size(); ++i) {
    wanted.push_back(instruction.outputs[i] != plan::kNoSlot);
    if (wanted.back() && !allocates)
      of_inputs[i] = room_for(program, run, instruction.outputs[i]);
  }
  c10::SmallVector<at::Tensor, 4> of_parameters;
  for (std::size_t i = 0; i < instruction.parameters.size(); ++i) {
    const at::Tensor& sum = sum_of(program, run, instruction.parameters[i]);
    const bool stands_alone = !sum.defined() || !instruction.adds_to_others[i];
    of_parameters.push_back(stands_alone ? sum : at::zeros_like(sum));
  }
  operation.backward({value_of(program, run, instruction.inputs[0]),
                      {inputs.data(), inputs.size()},
                      output,
                      {kept.data(), kept.size()},
                      {of_inputs.data(), of_inputs.size()},
                      instruction.sizes,
                      {wanted.data(), of_inputs.size()},
                      {of_parameters.data(), of_parameters.size()}});
  for (std::size_t i = 0; i < of_parameters.size(); ++i) {
    if (!of_parameters[i].defined())
      continue;
    const at::Tensor& sum = run.sums[instruction.parameters[i]];
    if (instruction.adds_to_others[i])
      sum.add_(of_parameters[i]);
    sum.unsafeGetTensorImpl()->bump_version();
    run.arrived[instruction.parameters[i]] = 1;
  }
  if (allocates) {
    for (std::size_t i = 0; i < of_inputs.size(); ++i) {
      if (!wanted[i])
        continue;
      run.absent[instruction.outputs[i]] = of_inputs[i].defined() ? 0 : 1;
      run.slots[instruction.outputs[i]] =
          of_inputs[i].defined() ? of_inputs[i].contiguous() : at::Tensor();
    }
  }
}

void run_calls_gradient(const plan::Program& program, const plan::Instruction& instruction,
                        plan::Run& run) {
  const plan::Instruction& forward = program.forward[instruction.forward];
  plan::Tape tape = std::move(run.tapes[forward.tape]);
  run.tapes[forward.tape] = {};
  std::vector<at::Tensor> results;
  std::vector<at::Tensor> gradients;
  for (std::size_t i = 0; i < instruction.inputs.size(); ++i) {
    if (is_absent(program, run, instruction.inputs[i]) || !tape.results[i].requires_grad())
      continue;
    results.push_back(tape.results[i]);
    gradients.push_back(value_of(program, run, instruction.inputs[i]));
  }
  if (results.empty())
    return mark_absent(run, instruction.outputs);
  std::vector<at::Tensor> wanted;
  std::vector<plan::SlotId> slots;
  for (std::size_t i = 0; i < instruction.outputs.size(); ++i) {
    if (instruction.outputs[i] == plan::kNoSlot)
      continue;
    wanted.push_back(tape.leaves[i]);
    slots.push_back(instruction.outputs[i]);
  }
  c10::SmallVector<bool, 8> goes_on(instruction.parameters.size());
  for (std::size_t i = 0; i < instruction.parameters.size(); ++i) {
    const at::Tensor& parameter = program.parameters[instruction.parameters[i]];
    wanted.push_back(parameter);
    // Continues from what arrived so far: see the head of this file.
    const at::Tensor& sum = sum_of(program, run, instruction.parameters[i]);
    goes_on[i] = run.arrived[instruction.parameters[i]] != 0;
    if (!goes_on[i])
      continue;
    results.push_back(parameter);
    gradients.push_back(sum);
  }
  if (wanted.empty())
    return;
  const auto found = torch::autograd::grad(results, wanted, gradients, /*retain_graph=*/false,
                                           /*create_graph=*/false, /*allow_unused=*/true);
  for (std::size_t i = 0; i < slots.size(); ++i) {
    run.slots[slots[i]] = found[i].defined() ? found[i].contiguous() : at::Tensor();
    run.absent[slots[i]] = found[i].defined() ? 0 : 1;
  }
  for (std::size_t i = 0; i < instruction.parameters.size(); ++i) {
    const at::Tensor& sum = sum_of(program, run, instruction.parameters[i]);
    const at::Tensor& more = found[slots.size() + i];
    if (!more.defined() || !sum.defined())
      continue;
    if (goes_on[i]) {
      sum.copy_(more);
    } else {
      sum.add_(more);
    }
    run.arrived[instruction.parameters[i]] = 1;
  }
}

}  // namespace

const at::Tensor& value_of(const plan::Program& program, plan::Run& run, plan::SlotId slot) {
  at::Tensor& tensor = run.slots[slot];
  if (!tensor.defined() && program.slots[slot].root != slot)
    tensor = run.slots[program.slots[slot].root].reshape(program.slots[slot].spec.sizes);
  return tensor;
}

void run_instruction(const plan::Program& program, const plan::Instruction& instruction,
                     plan::Run& run) {
  if (instruction.kind == plan::Instruction::Kind::kCalls) {  // each has a site of its own
    for (const plan::CallStep& call : instruction.calls)
      run_call(program, call, instruction, run);
    return;
  }
  const Timed timed(program, instruction.site, run);
  try {
    switch (instruction.kind) {
      case plan::Instruction::Kind::kOperation:
        run_operation(program, instruction, run);
        break;
      case plan::Instruction::Kind::kFusedKernel:
        run_fused(program, instruction, run);
        break;
      case plan::Instruction::Kind::kCalls:
        break;
      case plan::Instruction::Kind::kOperationGradient:
        run_operation_gradient(program, instruction, run);
        hand_sums_over(program, instruction, run);
        break;
      case plan::Instruction::Kind::kCallsGradient:
        run_calls_gradient(program, instruction, run);
        hand_sums_over(program, instruction, run);
        break;
      case plan::Instruction::Kind::kDrawSeed:
        run.seeds.resize(program.seeds);
        run.seeds[instruction.seed] = draw_from_task();
        break;
      case plan::Instruction::Kind::kEnterBranch:
        run.branches.push_back(std::make_unique<TaskRandom>(
            RandomStreams(run.seeds[instruction.seed]).seed("branch", {instruction.branch})));
        break;
      case plan::Instruction::Kind::kLeaveBranch:
        run.branches.pop_back();
        break;
      case plan::Instruction::Kind::kAlias:
        break;
    }
  } catch (...) {
    rethrow_from(program.sites[instruction.site]);
  }
}

void run_last_call(const plan::Program& program, const plan::Instruction& calls, plan::Run& run) {
  run_call(program, calls.calls.back(), calls, run);
}

bool is_absent(const plan::Program& program, const plan::Run& run, plan::SlotId slot) {
  return slot == plan::kNoSlot || run.absent[program.slots[slot].root] != 0;
}

void rethrow_from(const plan::Site& site) {
  std::exception_ptr failure = std::current_exception();
  for (const plan::Site::Step& step : site.way) {
    try {
      std::rethrow_exception(failure);
    } catch (...) {
      try {
        if (step.is_node)
          rethrow_failed(step.place, step.text_before);
        rethrow_within(step.place);
      } catch (...) {
        failure = std::current_exception();
      }
    }
  }
  std::rethrow_exception(failure);
}

}  // namespace treadle::graph

#include "plan_run.h"

#include <algorithm>
#include <array>
#include <exception>
#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>
#include <c10/util/SmallVector.h>
#include <torch/csrc/autograd/autograd.h>

#include <treadle/base/error.h>
#include <treadle/base/random.h>

#include "branches.h"
#include "failure.h"
#include "handed_on.h"
#include "place_text.h"
#include "run_graph.h"

namespace treadle::graph {
namespace {

using Kind = PlanInstruction::Kind;

at::TensorOptions options_of(const PlanProgram& program, SlotId slot) {
  return at::TensorOptions(program.slots[slot].spec.dtype).device(program.device);
}

/// A slot to be written.
at::Tensor& room_for(const PlanProgram& program, PlanRun& run, SlotId slot) {
  at::Tensor& tensor = run.slots[slot];
  if (!tensor.defined())
    tensor = at::empty(program.slots[slot].spec.sizes, options_of(program, slot));
  return tensor;
}

void mark_absent(PlanRun& run, const std::vector<SlotId>& slots) {
  for (const SlotId slot : slots) {
    if (slot != kNoSlot)
      run.absent[slot] = 1;
  }
}

void run_operation(const PlanProgram& program, const PlanInstruction& instruction, PlanRun& run) {
  const at::AutoDispatchBelowADInplaceOrView no_recording;
  c10::SmallVector<at::Tensor, 4> inputs;
  for (const SlotId slot : instruction.inputs)
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

/// Gradients that do not exist: of a sum the other one is left, everything else has none either.
void run_elements_with_gaps(const PlanProgram& program, const PlanInstruction& instruction,
                            PlanRun& run) {
  const std::vector<ElementPass::Step>& steps = instruction.elements->steps();
  std::vector<at::Tensor> results;
  std::size_t written = 0;
  for (const ElementPass::Step& step : steps) {
    const auto operand = [&](const ElementPass::Operand& where) -> at::Tensor {
      if (where.is_step)
        return results[where.index];
      const SlotId slot = instruction.inputs[where.index];
      return is_absent(program, run, slot) ? at::Tensor() : value_of(program, run, slot);
    };
    const at::Tensor a = operand(step.a);
    const at::Tensor b = takes_two(step.rule) ? operand(step.b) : a;
    at::Tensor result;
    if (a.defined() && b.defined()) {
      ElementPass::Step alone = step;
      alone.a = {false, 0};
      alone.b = {false, 1};
      alone.is_wanted = true;
      std::vector<at::Tensor> out{at::empty_like(a, at::MemoryFormat::Contiguous)};
      const std::array given{a, b};
      ElementPass({alone}).run(given, out);
      result = out.front();
    } else if (step.rule == ElementRule::kAdd && (a.defined() || b.defined())) {
      // Not what was given itself: this pass may write over it before later steps read the sum.
      result = a.defined() ? a.clone() : b.clone();
    }
    results.push_back(result);
    if (!step.is_wanted)
      continue;
    const SlotId slot = instruction.outputs[written++];
    if (result.defined()) {
      room_for(program, run, slot).copy_(result);
    } else {
      run.absent[slot] = 1;
    }
  }
}

void run_elements(const PlanProgram& program, const PlanInstruction& instruction, PlanRun& run) {
  const at::AutoDispatchBelowADInplaceOrView no_recording;
  const bool has_gaps = std::any_of(instruction.inputs.begin(), instruction.inputs.end(),
                                    [&](SlotId slot) { return is_absent(program, run, slot); });
  if (has_gaps)
    return run_elements_with_gaps(program, instruction, run);
  c10::SmallVector<at::Tensor, 4> given;
  for (const SlotId slot : instruction.inputs)
    given.push_back(value_of(program, run, slot));
  c10::SmallVector<at::Tensor, 4> wanted;
  for (std::size_t i = 0; i < instruction.outputs.size(); ++i) {
    const SlotId over = instruction.over.empty() ? kNoSlot : instruction.over[i];
    // A kernel may have laid its result out in another way.
    if (over != kNoSlot && value_of(program, run, over).is_contiguous())
      run.slots[instruction.outputs[i]] =
          value_of(program, run, over).view(program.slots[instruction.outputs[i]].spec.sizes);
    wanted.push_back(room_for(program, run, instruction.outputs[i]));
  }
  instruction.elements->run({given.data(), given.size()}, {wanted.data(), wanted.size()});
}

/// Branches at once, as in a dynamic graph.
void run_group(const PlannedCall& call, const Inputs& sources, PlanRun& run,
               GraphState::Data& state, const std::stop_token& stop,
               std::vector<at::Tensor>& results) {
  const Graph::Impl& graph = *call.graph;
  GraphState::Data& own = graph_state(state, call.path, call.path.size());
  std::vector<at::Tensor> values(graph.places.size());
  for (std::size_t i = 0; i < sources.size(); ++i)
    values[call.group->sources[i]] = sources[i];
  run_branches(*call.group, Branches::kAtOnce, run.seeds[call.seed], graph.parameters, values,
               [&](std::size_t place, const Inputs& given) {
                 return run_place(graph, place, given, own, stop);
               });
  for (const std::size_t place : call.group->places)
    results.push_back(std::move(values[place]));
}

at::Tensor source_of(const PlannedCall& call, std::size_t index, const CallTape& tape) {
  const PlannedCall::Source& source = call.inputs[index];
  if (source.index == kNoSlot)
    return {};
  return source.is_call ? tape.results[source.index] : tape.leaves[source.index];
}

/// Says when the node that `site` belongs to began and ended, where that is asked for.
class Timed {
 public:
  Timed(const PlanProgram& program, std::size_t site, GraphState::Data* state) {
    if (state == nullptr || state->times.empty())
      return;
    time_ = &state->times[program.sites[site].top_place];
    if (time_->first == GraphState::Data::Clock::time_point())
      time_->first = GraphState::Data::Clock::now();
  }
  ~Timed() {
    if (time_ != nullptr)
      time_->second = GraphState::Data::Clock::now();
  }
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;

 private:
  std::pair<GraphState::Data::Clock::time_point, GraphState::Data::Clock::time_point>* time_ =
      nullptr;
};

/// `record`: gradients are wanted of what it gives.
void run_call(const PlannedCall& call, const PlanInstruction& stretch, bool record, PlanRun& run,
              GraphState::Data& state, const std::stop_token& stop) {
  CallTape& tape = run.tapes[stretch.tape];
  c10::SmallVector<at::Tensor, 4> inputs;
  for (std::size_t i = 0; i < call.inputs.size(); ++i)
    inputs.push_back(source_of(call, i, tape));
  const at::AutoGradMode gradients(record);
  const Inputs given{inputs.data(), inputs.size()};
  if (call.group != nullptr)
    return run_group(call, given, run, state, stop, tape.results);
  NodeState& own =
      graph_state(state, call.path, call.path.size() - 1).nodes[call.path.back().first];
  tape.results.push_back(handed_on(
      call.callee != nullptr ? call.callee->call(given, own.callees[call.path.back().second], stop)
                             : call.node->run(given, own, stop)));
}

/// What the stretch takes, as the beginning of a record of its own.
void add_leaves(const PlanProgram& program, const PlanInstruction& stretch, PlanRun& run) {
  CallTape& tape = run.tapes[stretch.tape];
  while (tape.leaves.size() < stretch.inputs.size()) {
    const SlotId slot = stretch.inputs[tape.leaves.size()];
    at::Tensor leaf = value_of(program, run, slot).detach();
    if (program.slots[slot].needs_gradient)
      leaf.set_requires_grad(true);
    tape.leaves.push_back(std::move(leaf));
  }
}

void keep_result(const PlanProgram& program, const PlanInstruction& stretch, std::size_t index,
                 PlanRun& run) {
  const SlotId slot = stretch.outputs[index];
  at::Tensor& result = run.tapes[stretch.tape].results[index];
  const PlanSlot& planned = program.slots[slot];
  // The slot of a call that is made for the first time knows nothing yet.
  if (!planned.spec.is_absent() && result.sizes() != at::IntArrayRef(planned.spec.sizes)) {
    throw DataError("it gave " + TensorSpec::of(result).text() + " where a plan was made for " +
                    planned.spec.text() +
                    "; sizes that depend on numbers need \"execution\": \"dynamic\"");
  }
  run.slots[slot] = result.requires_grad() ? result.detach() : result;
}

void run_and_keep(const PlanProgram& program, const PlannedCall& call,
                  const PlanInstruction& stretch, PlanRun& run, GraphState::Data& state,
                  const std::stop_token& stop) {
  // Branches of the graph itself tell the time of each.
  const bool tells_itself = call.group != nullptr && call.path.empty();
  const Timed timed(program, call.site, tells_itself ? nullptr : &state);
  try {
    add_leaves(program, stretch, run);
    const std::vector<at::Tensor>& results = run.tapes[stretch.tape].results;
    const std::size_t before = results.size();
    run_call(call, stretch, program.records_gradients, run, state, stop);
    for (std::size_t i = before; i < results.size(); ++i) {
      try {
        keep_result(program, stretch, i, run);
      } catch (...) {
        if (call.group == nullptr)
          throw;
        const std::size_t place = call.group->places[i - before];
        std::vector<std::string> sizes;
        for (const std::size_t source : call.group->inputs[i - before])
          sizes.push_back(sizes_text(source_of(call, source, run.tapes[stretch.tape])));
        rethrow_failed(node_text(call.graph->nodes[place]), failed_text(*call.graph, place, sizes));
      }
    }
  } catch (...) {
    rethrow_from(program.sites[call.site]);
  }
}

/// Zeros, where nothing arrived yet; undefined for a parameter that is frozen.
const at::Tensor& sum_of(const PlanProgram& program, PlanRun& run, std::size_t parameter) {
  at::Tensor& sum = run.sums[parameter];
  if (!sum.defined() && program.parameters[parameter].requires_grad())
    sum = at::zeros_like(program.parameters[parameter]);
  return sum;
}

/// Adds sums that are complete to the gradients that are there, and lets their memory go.
void hand_sums_over(const PlanProgram& program, const PlanInstruction& instruction, PlanRun& run) {
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

void run_operation_gradient(const PlanProgram& program, const PlanInstruction& instruction,
                            PlanRun& run) {
  if (is_absent(program, run, instruction.inputs[0]))
    return mark_absent(run, instruction.outputs);
  const at::AutoDispatchBelowADInplaceOrView no_recording;
  const PlanInstruction& forward = program.forward[instruction.forward];
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
  for (const SlotId slot : forward.kept)
    kept.push_back(run.slots[slot]);
  c10::SmallVector<at::Tensor, 4> of_inputs(instruction.outputs.size());
  const bool allocates = operation.allocates();
  c10::SmallVector<bool, 8> wanted;
  for (std::size_t i = 0; i < of_inputs.size(); ++i) {
    wanted.push_back(instruction.outputs[i] != kNoSlot);
    if (wanted.back() && !allocates)
      of_inputs[i] = room_for(program, run, instruction.outputs[i]);
  }
  // A kernel that adds to what is there rounds otherwise than one whose result is added: what was
  // added to zeros is added to the others.
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

void run_calls_gradient(const PlanProgram& program, const PlanInstruction& instruction,
                        PlanRun& run) {
  const PlanInstruction& forward = program.forward[instruction.forward];
  CallTape tape = std::move(run.tapes[forward.tape]);
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
  std::vector<SlotId> slots;
  for (std::size_t i = 0; i < instruction.outputs.size(); ++i) {
    if (instruction.outputs[i] == kNoSlot)
      continue;
    wanted.push_back(tape.leaves[i]);
    slots.push_back(instruction.outputs[i]);
  }
  c10::SmallVector<bool, 8> goes_on(instruction.parameters.size());
  for (std::size_t i = 0; i < instruction.parameters.size(); ++i) {
    const at::Tensor& parameter = program.parameters[instruction.parameters[i]];
    wanted.push_back(parameter);
    // What others added so far comes first, and each use of the parameter within adds to it, as in
    // one record of all.
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

const at::Tensor& value_of(const PlanProgram& program, PlanRun& run, SlotId slot) {
  at::Tensor& tensor = run.slots[slot];
  if (!tensor.defined() && program.slots[slot].root != slot)
    tensor = run.slots[program.slots[slot].root].reshape(program.slots[slot].spec.sizes);
  return tensor;
}

void run_instruction(const PlanProgram& program, const PlanInstruction& instruction, PlanRun& run,
                     GraphState::Data* state, const std::stop_token* stop) {
  if (instruction.kind == Kind::kCalls) {  // each has a site of its own
    for (const PlannedCall& call : instruction.calls)
      run_and_keep(program, call, instruction, run, *state, *stop);
    return;
  }
  const Timed timed(program, instruction.site, state);
  try {
    switch (instruction.kind) {
      case Kind::kOperation:
        run_operation(program, instruction, run);
        break;
      case Kind::kElements:
        run_elements(program, instruction, run);
        break;
      case Kind::kCalls:
        break;
      case Kind::kOperationGradient:
        run_operation_gradient(program, instruction, run);
        hand_sums_over(program, instruction, run);
        break;
      case Kind::kCallsGradient:
        run_calls_gradient(program, instruction, run);
        hand_sums_over(program, instruction, run);
        break;
      case Kind::kDrawSeed:
        run.seeds.resize(program.seeds);
        run.seeds[instruction.seed] = draw_from_task();
        break;
      case Kind::kEnterBranch:
        run.branches.push_back(std::make_unique<TaskRandom>(
            RandomStreams(run.seeds[instruction.seed]).seed("branch", {instruction.branch})));
        break;
      case Kind::kLeaveBranch:
        run.branches.pop_back();
        break;
      case Kind::kAlias:
        break;
    }
  } catch (...) {
    rethrow_from(program.sites[instruction.site]);
  }
}

void run_last_call(const PlanProgram& program, const PlanInstruction& calls, PlanRun& run,
                   GraphState::Data* state, const std::stop_token* stop) {
  run_and_keep(program, calls.calls.back(), calls, run, *state, *stop);
}

GraphState::Data& graph_state(GraphState::Data& top, const StatePath& path, std::size_t steps) {
  GraphState::Data* data = &top;
  for (std::size_t i = 0; i < steps; ++i)
    data = &data->nodes[path[i].first].callees[path[i].second].graph->data();
  return *data;
}

bool is_absent(const PlanProgram& program, const PlanRun& run, SlotId slot) {
  return slot == kNoSlot || run.absent[program.slots[slot].root] != 0;
}

void rethrow_from(const PlanSite& site) {
  std::exception_ptr failure = std::current_exception();
  for (const PlanSite::Step& step : site.way) {
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

#include "compile/lowering.h"

#include <algorithm>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/plan/op.h>

#include "compile/recording.h"
#include "compile/run_plan.h"
#include "run/branches.h"
#include "run/place_text.h"
#include "run/run_graph.h"

// Lowering: from places to instructions, by running the graph once.
//
// Every instruction is carried out as it is added (add()), because only running tells the sizes
// that opaque calls return. The run has no arena; release() and is_kept_ free memory as a dynamic
// forward would, except what the backward reads.
//
// Invariants:
// - Instructions stand in execution order, and so do slots; a slot is written by one instruction.
// - spec() returns a reference into program_.slots, and begin_stretch() one into program_.forward:
//   both are valid only until something is added.
// - A value with several users passes accumulation_point() per user, as in run_graph() and
//   run_branches(): rules 2 and 3 of run/gradient_order.h decide the bits of gradients.
// - Adjacent calls share one autograd record (a stretch) only if that does not change the order in
//   which gradients are added: joins_calls().
// - kEnterBranch is added when something in a branch first draws (enter_branch()): a branch without
//   random numbers costs nothing. Nested branches are entered from the outside in.

namespace treadle::graph {
namespace {

std::int64_t elements_of(const std::vector<std::int64_t>& sizes) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes)
    count *= size;
  return count;
}

/// With -1 replaced by what is left.
std::vector<std::int64_t> resolved(std::vector<std::int64_t> sizes, std::int64_t elements) {
  const auto open = std::find(sizes.begin(), sizes.end(), -1);
  if (open != sizes.end()) {
    *open = 1;
    const std::int64_t known = elements_of(sizes);
    *open = known == 0 ? 0 : elements / known;
  }
  TREADLE_EXPECTS(elements_of(sizes) == elements, "a reshape keeps the number of elements");
  return sizes;
}

bool has_gradients(const StateDict& memory) {
  const auto& tensors = memory.tensors();
  const auto& parts = memory.parts();
  return std::any_of(tensors.begin(), tensors.end(),
                     [](const auto& item) { return item.second.requires_grad(); }) ||
         std::any_of(parts.begin(), parts.end(),
                     [](const auto& item) { return has_gradients(item.second); });
}

bool has_gradients(const Callee::State& state) {
  if (state.graph == nullptr)
    return has_gradients(state.memory);
  const std::vector<NodeState>& nodes = state.graph->data().nodes;
  return std::any_of(nodes.begin(), nodes.end(), [](const NodeState& node) {
    return std::any_of(node.callees.begin(), node.callees.end(),
                       [](const Callee::State& callee) { return has_gradients(callee); });
  });
}

bool can_have_gradient(const at::Tensor& tensor) {
  return tensor.is_floating_point() || tensor.is_complex();
}

}  // namespace

PlanPosition PlanPosition::within(std::string what) const {
  PlanPosition position = *this;
  position.inside.insert(position.inside.begin(), {std::move(what), "", /*is_node=*/false});
  return position;
}

PlanLowering::PlanLowering(plan::Program& program, plan::Run& run, const GraphCallContext& context)
    : program_(program),
      run_(run),
      state_(context.state),
      truncates_bptt_(context.scope.truncates_bptt) {
  program_.sites.emplace_back();  // of what belongs to no node: the graph itself
}

std::vector<PlanValue> PlanLowering::lower_graph(const Graph::Impl& graph, const StatePath& path,
                                                 std::size_t top_place,
                                                 const std::vector<plan::Site::Step>& around,
                                                 std::span<const PlanValue> inputs,
                                                 std::span<const PlanValue> states) {
  std::vector<PlanValue> values(graph.places.size(), absent());
  for (std::size_t i = 0; i < graph.inputs.size(); ++i)
    values[graph.inputs[i]] = inputs[i];
  for (std::size_t i = 0; i < graph.states.size(); ++i)
    values[graph.states[i].read] = states[i];

  // Memory is freed as in a dynamic forward. Counted per root that was made here: places that still
  // use it. A tag that is asked for counts as one more.
  const plan::SlotId begin_of_graph = program_.slots.size();
  std::vector<std::size_t>
      users;  // of slots that were made here, by roots: places still to be used
  const auto count_users = [&](PlanValue value, std::size_t by) {
    if (is_absent(value) || root_of(value) < begin_of_graph)
      return;
    users.resize(program_.slots.size() - begin_of_graph);
    users[root_of(value) - begin_of_graph] += by;
  };
  const auto set = [&](std::size_t place, PlanValue value) {
    values[place] = value;
    const bool is_seen =
        path.empty() && keeps_what_is_seen() && graph.places[place].tag_slot.has_value();
    count_users(value, is_seen ? 2 : 1);
  };
  const auto release_unused = [&](plan::SlotId root) {
    if (root >= begin_of_graph && users[root - begin_of_graph] == 0)
      release(root);
  };

  Branch branch;
  if (!graph.groups_of_branches.empty()) {
    enter_branch();
    branch.seed = program_.seeds++;
    plan::Instruction draw;
    draw.kind = plan::Instruction::Kind::kDrawSeed;
    draw.seed = branch.seed;
    add(std::move(draw));
  }
  const auto position_of = [&](std::size_t place) {
    return PlanPosition{&graph, place, path.empty() ? place : top_place, path, around, {}};
  };
  for (std::size_t index = 0; index < graph.places.size(); ++index) {
    const Place& place = graph.places[index];
    const plan::SlotId begin_of_step = program_.slots.size();
    // A group runs where its first place stands.
    const BranchGroup* const its_group =
        place.group ? &graph.groups_of_branches[*place.group] : nullptr;
    if (its_group != nullptr && its_group->places.front() == index) {
      const BranchGroup& group = *its_group;
      // As run_branches() does: one accumulation point for the group, one for each branch.
      std::vector<PlanValue> sources;
      for (const std::size_t source : group.sources)
        sources.push_back(accumulation_point(values[source]));
      const bool is_parallel = runs_in_parallel(group, graph.branches);
      program_.conditions.emplace_back([&graph, &group, is_parallel] {
        return is_parallel == runs_in_parallel(group, graph.branches);
      });
      if (is_parallel) {
        const auto given = call_group(position_of(index), group, branch.seed, sources);
        for (std::size_t i = 0; i < group.places.size(); ++i)
          set(group.places[i], given[i]);
      }
      for (std::size_t i = 0; i < group.places.size() && !is_parallel; ++i) {
        std::vector<PlanValue> own(sources.size(), absent());
        std::vector<PlanValue> given;
        for (const std::size_t source : group.inputs[i]) {
          if (is_absent(own[source]))
            own[source] = accumulation_point(sources[source]);
          given.push_back(own[source]);
        }
        branch.place = group.places[i];
        branches_.push_back(branch);
        set(group.places[i], lower_place(position_of(group.places[i]), given).front());
        if (branches_.back().entered) {
          plan::Instruction leave;
          leave.kind = plan::Instruction::Kind::kLeaveBranch;
          add(std::move(leave));
        }
        branches_.pop_back();
      }
    } else if (its_group == nullptr && place.node != nullptr) {
      std::vector<PlanValue> given;
      for (std::size_t i = 0; i < place.inputs.size(); ++i) {
        const PlanValue value = values[place.inputs[i]];
        given.push_back(place.is_shared[i] ? accumulation_point(value) : value);
      }
      const std::vector<PlanValue> outputs = lower_place(position_of(index), given);
      set(index, outputs.front());
      for (std::size_t i = 0; i < place.further.size(); ++i)
        set(place.further[i], outputs[i + 1]);
    }
    users.resize(program_.slots.size() - begin_of_graph);
    for (const std::size_t done : place.done) {
      count_users(values[done], static_cast<std::size_t>(-1));
      if (!is_absent(values[done]))
        release_unused(root_of(values[done]));
    }
    for (plan::SlotId slot = begin_of_step; slot < program_.slots.size(); ++slot)
      release_unused(program_.slots[slot].root);
  }
  return values;
}

PlanValue PlanLowering::accumulation_point(PlanValue value) {
  return is_absent(value) || !program_.slots[slot_of(value)].needs_gradient
             ? value
             : alias(value, spec(value).sizes);
}

std::vector<PlanValue> PlanLowering::lower_place(const PlanPosition& position,
                                                 std::span<const PlanValue> inputs) {
  const Node& node = *position.graph->places[position.place].node;
  add_site(position, inputs);
  const std::size_t site = site_;
  const bool all_there = std::none_of(inputs.begin(), inputs.end(), is_absent);
  if (all_there) {
    if (auto values = node.lower_outputs(*this, position, inputs))
      return *std::move(values);
  }
  site_ = site;
  StatePath path = position.path;
  path.emplace_back(position.place, 0);
  return call(
      call_of_node(node, std::move(path)), inputs,
      all_there || node.depends_on_numbers() ? node.why_called() : "one of its inputs is absent",
      node.depends_on_numbers());
}

PlanValue PlanLowering::lower_callee(const PlanPosition& position, std::size_t index,
                                     std::span<const PlanValue> inputs) {
  const Callee& callee = position.graph->places[position.place].node->callees()[index];
  StatePath path = position.path;
  path.emplace_back(position.place, index);
  add_site(position, inputs);
  std::string why = "its layer cannot be lowered to operations";
  if (callee.graph() != nullptr) {
    if (const auto values = lower_within(position, index, inputs, why))
      return (*values)[callee.graph()->impl().outputs.front()];
  } else if (callee.keeps_state()) {
    why = "it keeps state between calls";
  } else if (callee.reports()) {
    why = "its layer logs or adds to the loss";
  } else if (const auto* planned = callee.ability<Lowerable>()) {
    if (const auto value = planned->lower(*this, inputs))
      return *value;
    why = "its layer cannot be lowered for such inputs";
  } else if (callee.is_adapted()) {
    if (const auto operation = recorded(callee, inputs, why))
      return apply(operation, inputs);
  }
  return call(call_of_callee(callee, std::move(path)), inputs, why, /*is_dynamic=*/false).front();
}

std::shared_ptr<const PlanOp> PlanLowering::recorded(const Callee& callee,
                                                     std::span<const PlanValue> inputs,
                                                     std::string& why) {
  std::vector<at::Tensor> given;
  std::vector<bool> wanted;
  for (const PlanValue input : inputs) {
    if (is_absent(input))
      return nullptr;
    given.push_back(value_of(program_, run_, slot_of(input)));
    wanted.push_back(program_.slots[slot_of(input)].needs_gradient);
  }
  return record({callee, static_cast<const GraphCallContext*>(run_.context)->scope, given,
                 std::move(wanted), program_.records_gradients},
                why);
}

std::optional<std::vector<PlanValue>> PlanLowering::lower_within(const PlanPosition& position,
                                                                 std::size_t index,
                                                                 std::span<const PlanValue> inputs,
                                                                 std::string& why) {
  const Graph::Impl& graph =
      position.graph->places[position.place].node->callees()[index].graph()->impl();
  if (!graph.states.empty()) {
    why = "the inner graph keeps state";
  } else if (!graph.tells_beginning.empty()) {
    why = "layers of the inner graph are notified before each forward pass";
  } else if (graph.tag_slots > 0 && keeps_what_is_seen()) {
    why = "tagged values of the inner graph are read";
  } else if (inputs.size() == graph.inputs.size()) {
    StatePath path = position.path;
    path.emplace_back(position.place, index);
    // A copy: more sites come.
    const std::vector<plan::Site::Step> around = program_.sites[site_].way;
    return lower_graph(graph, path, position.top_place, around, inputs, {});
  }
  return std::nullopt;
}

std::optional<std::vector<PlanValue>> PlanLowering::lower_outputs_of_graph(
    const PlanPosition& position, std::span<const PlanValue> inputs,
    std::span<const std::string> further) {
  const Callee& callee = position.graph->places[position.place].node->main();
  if (callee.graph() == nullptr)
    return std::nullopt;
  add_site(position, inputs);
  std::string why;
  const auto values = lower_within(position, 0, inputs, why);
  if (!values)
    return std::nullopt;
  // As CallNode::run() does: two outputs may be one value.
  std::vector<PlanValue> outputs{
      accumulation_point((*values)[callee.graph()->impl().outputs.front()])};
  for (const std::string& name : further)
    outputs.push_back(accumulation_point((*values)[callee.output_place(name)]));
  return outputs;
}

void PlanLowering::expect_no_state(const PlanPosition& position, std::size_t callee) const {
  GraphState::Data& data = graph_state(state_, position.path, position.path.size());
  if (!has_gradients(data.nodes[position.place].callees[callee]))
    return;
  try {
    throw DataError(
        "a layer left a tensor for the next round, but does not derive from "
        "treadle::KeepsState");
  } catch (...) {
    rethrow_from(program_.sites[site_]);
  }
}

void PlanLowering::add_site(const PlanPosition& position, std::span<const PlanValue> inputs) {
  const Graph::Impl& graph = *position.graph;
  std::vector<std::string> sizes;
  for (std::size_t i = 0; i < graph.places[position.place].inputs.size(); ++i)
    sizes.push_back(i < inputs.size() && !is_absent(inputs[i]) ? sizes_text(spec(inputs[i]).sizes)
                                                               : "nothing");
  plan::Site site;
  site.top_place = position.top_place;
  site.node = state_.graph->impl().nodes[position.top_place].id;
  const std::string node = node_text(graph.nodes[position.place]);
  const std::string failed = failed_text(graph, position.place, sizes);
  site.way = position.inside;
  site.way.push_back({node, failed, /*is_node=*/true});
  site.way.insert(site.way.end(), position.around.begin(), position.around.end());
  site_ = program_.sites.size();
  program_.sites.push_back(std::move(site));
}

plan::SlotId PlanLowering::add_slot(TensorSpec spec, plan::Memory memory) {
  plan::Slot slot;
  slot.spec = std::move(spec);
  slot.memory = memory;
  slot.root = program_.slots.size();
  program_.slots.push_back(std::move(slot));
  run_.slots.emplace_back();
  run_.absent.push_back(0);
  return program_.slots.size() - 1;
}

PlanValue PlanLowering::take(const at::Tensor& tensor) {
  if (!tensor.defined()) {
    program_.inputs.push_back(plan::kNoSlot);
    return absent();
  }
  const plan::SlotId slot = add_slot(TensorSpec::of(tensor), plan::Memory::kInput);
  program_.slots[slot].needs_gradient = program_.records_gradients && tensor.requires_grad();
  run_.slots[slot] = tensor.detach();
  program_.inputs.push_back(slot);
  return static_cast<PlanValue>(slot);
}

void PlanLowering::make_output(PlanValue value) {
  program_.outputs.push_back(slot_of(value));
}

const TensorSpec& PlanLowering::spec(PlanValue value) const {
  return program_.slots[slot_of(value)].spec;
}

std::size_t PlanLowering::parameter(const at::Tensor& tensor) {
  const auto found = std::find_if(program_.parameters.begin(), program_.parameters.end(),
                                  [&](const at::Tensor& known) { return known.is_same(tensor); });
  if (found != program_.parameters.end())
    return static_cast<std::size_t>(found - program_.parameters.begin());
  program_.parameters.push_back(tensor);
  return program_.parameters.size() - 1;
}

bool PlanLowering::needs_gradient(std::span<const PlanValue> inputs,
                                  const std::vector<std::size_t>& parameters) const {
  if (!program_.records_gradients)
    return false;
  return std::any_of(inputs.begin(), inputs.end(),
                     [&](PlanValue value) {
                       return !is_absent(value) && program_.slots[slot_of(value)].needs_gradient;
                     }) ||
         std::any_of(parameters.begin(), parameters.end(),
                     [&](std::size_t index) { return program_.parameters[index].requires_grad(); });
}

void PlanLowering::add(plan::Instruction instruction) {
  instruction.site = site_;
  program_.forward.push_back(std::move(instruction));
  run_instruction(program_, program_.forward.back(), run_);
  if (program_.records_gradients)
    keep_for_backward(program_.forward.back());
}

/// Marks roots that the backward reads, which release() then spares.
void PlanLowering::keep_for_backward(const plan::Instruction& instruction) {
  is_kept_.resize(program_.slots.size());
  const auto keep = [&](const std::vector<plan::SlotId>& slots) {
    for (const plan::SlotId slot : slots) {
      if (slot != plan::kNoSlot)
        is_kept_[program_.slots[slot].root] = true;
    }
  };
  switch (instruction.kind) {
    case plan::Instruction::Kind::kOperation:
      keep(instruction.kept);
      if (instruction.operation->backward_reads().inputs)
        keep(instruction.inputs);
      if (instruction.operation->backward_reads().output)
        keep(instruction.outputs);
      return;
    case plan::Instruction::Kind::kFusedKernel:
      if (instruction.kernel->steps().front().rule == plan::ElementwiseRule::kRelu)
        return keep(instruction.outputs);
      if (gradient_reads_inputs(instruction.kernel->steps().front().rule))
        keep(instruction.inputs);
      return;
    default:
      return;
  }
}

/// Frees a root that neither the rest of the forward nor the backward reads, with all its aliases.
void PlanLowering::release(plan::SlotId root) {
  is_kept_.resize(program_.slots.size());
  if (is_kept_[root])
    return;
  run_.slots[root].reset();
  if (const auto known = aliases_.find(root); known != aliases_.end()) {
    for (const plan::SlotId slot : known->second)
      run_.slots[slot].reset();
  }
}

/// Before something draws: enters the branches around it that are not entered yet. Each has a
/// random stream of its own.
void PlanLowering::enter_branch() {
  for (Branch& branch : branches_) {
    if (branch.entered)
      continue;
    branch.entered = true;
    plan::Instruction enter;
    enter.kind = plan::Instruction::Kind::kEnterBranch;
    enter.seed = branch.seed;
    enter.branch = branch.place;
    add(std::move(enter));
  }
}

PlanValue PlanLowering::apply(std::shared_ptr<const PlanOp> op, std::span<const PlanValue> inputs) {
  if (op->draws())
    enter_branch();
  std::vector<TensorSpec> specs;
  for (const PlanValue input : inputs)
    specs.push_back(spec(input));
  const plan::Memory memory = op->allocates() ? plan::Memory::kOwn : plan::Memory::kArena;
  plan::Instruction instruction;
  for (const PlanValue input : inputs)
    instruction.inputs.push_back(slot_of(input));
  for (const at::Tensor& tensor : op->parameters())
    instruction.parameters.push_back(parameter(tensor));
  const bool allocates = op->allocates();
  const plan::SlotId output = add_slot(allocates ? TensorSpec() : op->result(specs), memory);
  program_.slots[output].needs_gradient = needs_gradient(inputs, instruction.parameters);
  instruction.outputs = {output};
  for (const TensorSpec& kept : op->keeps(specs))
    instruction.kept.push_back(add_slot(kept, memory));
  const std::vector<plan::SlotId> kept = instruction.kept;
  instruction.operation = std::move(op);
  add(std::move(instruction));
  if (allocates) {
    program_.slots[output].spec = TensorSpec::of(run_.slots[output]);
    for (const plan::SlotId slot : kept)
      program_.slots[slot].spec = TensorSpec::of(run_.slots[slot]);
  }
  return static_cast<PlanValue>(output);
}

PlanValue PlanLowering::element(plan::ElementwiseRule rule, plan::SlotId a, plan::SlotId b,
                                double number) {
  plan::Instruction instruction;
  instruction.kind = plan::Instruction::Kind::kFusedKernel;
  instruction.inputs = {a};
  plan::FusedKernel::Step step{rule, number, {false, 0}, {false, 1}, /*is_wanted=*/true};
  if (takes_two(rule))
    instruction.inputs.push_back(b);
  const plan::SlotId output = add_slot(program_.slots[a].spec, plan::Memory::kArena);
  program_.slots[output].needs_gradient =
      program_.slots[a].needs_gradient || (takes_two(rule) && program_.slots[b].needs_gradient);
  instruction.outputs = {output};
  instruction.kernel.emplace(std::vector{step});
  add(std::move(instruction));
  return static_cast<PlanValue>(output);
}

PlanValue PlanLowering::elementwise(ElementwiseOp op, PlanValue a, double number) {
  TREADLE_EXPECTS(!takes_two(plan::rule_of(op)), "this operation takes two values");
  return element(plan::rule_of(op), slot_of(a), plan::kNoSlot, number);
}

PlanValue PlanLowering::elementwise(ElementwiseOp op, PlanValue a, PlanValue b) {
  TREADLE_EXPECTS(takes_two(plan::rule_of(op)), "this operation takes one value");
  TREADLE_EXPECTS(spec(a) == spec(b), "element-wise operations work on tensors of the same sizes");
  return element(plan::rule_of(op), slot_of(a), slot_of(b), 0);
}

PlanValue PlanLowering::reshape(PlanValue value, std::vector<std::int64_t> sizes) {
  sizes = resolved(std::move(sizes), elements_of(spec(value).sizes));
  return sizes == spec(value).sizes ? value : alias(value, std::move(sizes));
}

/// An alias without needs_gradient: the backward gives it nothing, and calls take it as a leaf of
/// their own.
PlanValue PlanLowering::detached(PlanValue value) {
  if (is_absent(value) || !program_.slots[slot_of(value)].needs_gradient)
    return value;
  const PlanValue end = alias(value, spec(value).sizes);
  program_.slots[slot_of(end)].needs_gradient = false;
  return end;
}

PlanValue PlanLowering::alias(PlanValue value, std::vector<std::int64_t> sizes) {
  const plan::SlotId source = slot_of(value);
  const plan::SlotId slot = add_slot({std::move(sizes), spec(value).dtype}, plan::Memory::kArena);
  program_.slots[slot].memory = program_.slots[source].memory;
  program_.slots[slot].root = program_.slots[source].root;
  aliases_[program_.slots[slot].root].push_back(slot);
  program_.slots[slot].needs_gradient = program_.slots[source].needs_gradient;
  plan::Instruction instruction;
  instruction.kind = plan::Instruction::Kind::kAlias;
  instruction.inputs = {source};
  instruction.outputs = {slot};
  add(std::move(instruction));
  return static_cast<PlanValue>(slot);
}

/// Whether a call of such inputs can be recorded together with the calls before it: gradients of a
/// tensor or parameter that both take, and of numbers in other sizes, would meet in another order.
bool PlanLowering::joins_calls(const plan::PlanCall& call,
                               std::span<const PlanValue> inputs) const {
  if (program_.forward.empty() || program_.forward.back().kind != plan::Instruction::Kind::kCalls)
    return false;
  const plan::Instruction& before = program_.forward.back();
  const auto has = [](const std::vector<plan::SlotId>& slots, plan::SlotId slot) {
    return std::find(slots.begin(), slots.end(), slot) != slots.end();
  };
  for (const at::Tensor& tensor : call.parameters()) {
    for (const std::size_t index : before.parameters) {
      if (program_.parameters[index].is_same(tensor))
        return false;
    }
  }
  return std::none_of(inputs.begin(), inputs.end(), [&](PlanValue value) {
    if (is_absent(value))
      return false;
    const plan::SlotId slot = slot_of(value);
    const plan::SlotId root = program_.slots[slot].root;
    return has(before.inputs, slot) || (root != slot && has(before.outputs, root));
  });
}

void PlanLowering::note_call(const std::string& node, const std::string& why, bool is_dynamic) {
  const bool is_known = std::any_of(
      program_.calls.begin(), program_.calls.end(),
      [&](const plan::CallInfo& known) { return known.node == node && known.why == why; });
  if (!is_known)
    program_.calls.push_back({node, why, is_dynamic});
}

plan::Instruction& PlanLowering::begin_stretch() {
  plan::Instruction instruction;
  instruction.kind = plan::Instruction::Kind::kCalls;
  instruction.tape = program_.tapes++;
  instruction.site = site_;
  program_.forward.push_back(std::move(instruction));
  run_.tapes.emplace_back();
  return program_.forward.back();
}

bool PlanLowering::take_parameters(const plan::PlanCall& call, plan::Instruction& stretch) {
  if (!program_.records_gradients)
    return false;
  bool any = false;
  for (const at::Tensor& tensor : call.parameters()) {
    if (!tensor.requires_grad())
      continue;
    any = true;
    const std::size_t index = parameter(tensor);
    if (std::find(stretch.parameters.begin(), stretch.parameters.end(), index) ==
        stretch.parameters.end())
      stretch.parameters.push_back(index);
  }
  return any;
}

void PlanLowering::add_call(plan::Instruction& stretch, std::shared_ptr<const plan::PlanCall> call,
                            std::span<const PlanValue> inputs) {
  const bool is_trained = take_parameters(*call, stretch);
  const std::size_t results = call->result_count();
  plan::CallStep step;
  step.call = std::move(call);
  step.site = site_;
  for (const PlanValue input : inputs) {
    const plan::SlotId slot = slot_of(input);
    const auto of_call = std::find(stretch.outputs.begin(), stretch.outputs.end(), slot);
    if (slot == plan::kNoSlot) {
      step.inputs.push_back({false, plan::kNoSlot});
    } else if (of_call != stretch.outputs.end()) {
      step.inputs.push_back({true, static_cast<std::size_t>(of_call - stretch.outputs.begin())});
    } else {
      auto known = std::find(stretch.inputs.begin(), stretch.inputs.end(), slot);
      if (known == stretch.inputs.end())
        known = stretch.inputs.insert(stretch.inputs.end(), slot);
      step.inputs.push_back({false, static_cast<std::size_t>(known - stretch.inputs.begin())});
    }
  }
  stretch.calls.push_back(std::move(step));
  const std::size_t first = stretch.outputs.size();
  for (std::size_t i = 0; i < results; ++i)
    stretch.outputs.push_back(add_slot({}, plan::Memory::kOwn));
  run_last_call(program_, stretch, run_);
  for (std::size_t i = first; i < stretch.outputs.size(); ++i) {
    const plan::SlotId output = stretch.outputs[i];
    program_.slots[output].spec = TensorSpec::of(run_.slots[output]);
    // Not this run's requires_grad: a switch may have chosen a frozen branch, and choose another
    // next time.
    program_.slots[output].needs_gradient =
        (is_trained || needs_gradient(inputs, {})) && can_have_gradient(run_.slots[output]);
  }
}

std::vector<PlanValue> PlanLowering::call(std::shared_ptr<const plan::PlanCall> call,
                                          std::span<const PlanValue> inputs, const std::string& why,
                                          bool is_dynamic) {
  note_call(program_.sites[site_].node, why, is_dynamic);
  enter_branch();
  plan::Instruction& stretch =
      joins_calls(*call, inputs) ? program_.forward.back() : begin_stretch();
  const std::size_t first = stretch.outputs.size();
  add_call(stretch, std::move(call), inputs);
  std::vector<PlanValue> values;
  for (std::size_t i = first; i < stretch.outputs.size(); ++i)
    values.push_back(static_cast<PlanValue>(stretch.outputs[i]));
  return values;
}

std::vector<PlanValue> PlanLowering::call_group(const PlanPosition& first, const BranchGroup& group,
                                                std::size_t seed,
                                                std::span<const PlanValue> sources) {
  enter_branch();
  // What fails within says so itself; what stands around adds to it.
  plan::Site site;
  // Branches of the graph that is compiled time themselves.
  if (!first.path.empty())
    site.top_place = first.top_place;
  site.node = state_.graph->impl().nodes[first.top_place].id;
  site.way = first.around;
  site_ = program_.sites.size();
  program_.sites.push_back(std::move(site));
  plan::Instruction& stretch = begin_stretch();
  for (const std::size_t place : group.places) {
    note_call(first.path.empty() ? first.graph->nodes[place].id : program_.sites[site_].node,
              "it runs beside other branches", /*is_dynamic=*/false);
  }
  add_call(stretch, call_of_group(*first.graph, group, seed, first.path), sources);
  std::vector<PlanValue> values;
  for (const plan::SlotId output : stretch.outputs)
    values.push_back(static_cast<PlanValue>(output));
  return values;
}

}  // namespace treadle::graph

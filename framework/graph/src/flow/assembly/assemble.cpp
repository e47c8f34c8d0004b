#include "flow/assembly/assemble.h"

#include <algorithm>
#include <utility>

#include <boost/range/iterator_range.hpp>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/core/model/abilities/begins_forward.h>

#include "flow/assembly/callee_checks.h"
#include "flow/assembly/callees.h"
#include "flow/assembly/depth.h"
#include "flow/assembly/draft.h"
#include "flow/assembly/node_of_step.h"
#include "flow/assembly/ports.h"
#include "flow/assembly/preparation.h"
#include "flow/assembly/shapes.h"

// From nodes and edges to a graph: orders places, makes them one by one (callees, ports,
// node_of_step, shapes), and prepares execution (preparation).
//
// Problems are collected. A place whose inputs have a problem is skipped without another message.

namespace treadle::graph {
namespace {

/// False, with a problem added, where there is a cycle.
bool order_places(Draft& draft) {
  std::vector<std::string> cycle;
  draft.order = execution_order(draft.wired.description, cycle);
  if (!cycle.empty()) {
    draft.complain(nullptr, "the graph has a cycle: " + joined(cycle, " -> "));
    return false;
  }
  draft.place_of.resize(draft.order.size());
  for (std::size_t place = 0; place < draft.order.size(); ++place)
    draft.place_of[draft.order[place]] = place;
  draft.graph->places.resize(draft.order.size());
  draft.graph->nodes.resize(draft.order.size());
  return true;
}

void describe_inputs(Draft& draft) {
  const Wired& wired = draft.wired;
  draft.graph->input_names = wired.input_names;
  // The first input is the stream; the order of the others is that of the flow's input() steps.
  for (const Vertex input : wired.inputs)
    draft.graph->inputs.push_back(draft.place_of[input]);
  if (draft.spec == nullptr)
    return;
  draft.graph->dtype = draft.spec->dtype;
  const std::vector<TensorSpec>& given = draft.spec->inputs;
  if (given.size() != wired.inputs.size()) {
    draft.complain(nullptr, "the flow takes " + std::to_string(wired.inputs.size()) +
                                (wired.inputs.size() == 1 ? " input" : " inputs") +
                                (wired.input_names.empty()
                                     ? ""
                                     : " (the stream, " + joined(wired.input_names, ", ") + ")") +
                                ", but is given " + std::to_string(given.size()));
    return;
  }
  for (std::size_t i = 0; i < given.size(); ++i)
    draft.graph->nodes[draft.graph->inputs[i]].result = given[i];
}

/// Inputs are in the order in which a callee gets them: the stream, then references.
void describe_place(Draft& draft, std::size_t place) {
  const WantedNode& node = draft.wanted(place);
  NodeInfo& info = draft.graph->nodes[place];
  info.id = node.id;
  info.type = node.type;
  info.kind = node.kind;
  info.tags = node.tags;
  info.frozen = node.step != nullptr && node.step->frozen;
  info.control = control_text(node);
  if (node.kind == NodeKind::kLayer && node.parts.front().parameters().is_object())
    info.attributes = node.parts.front().parameters().dump();
  for (const std::string& tag : node.tags)
    draft.graph->tags.emplace(tag, place);
  // All tags of a place share one slot.
  if (!node.tags.empty())
    draft.graph->places[place].tag_slot = draft.graph->tag_slots++;
  const Description& description = draft.wired.description;
  for (const auto& edge :
       boost::make_iterator_range(boost::in_edges(draft.order[place], description))) {
    const std::size_t source = draft.place_of[boost::source(edge, description)];
    const NodeInput::Kind kind = description[edge].kind;
    info.inputs.push_back({source, description[edge].port, kind});
    // The level is the length of the longest way to a node, so nodes of one level cannot need each
    // other. A state's edge comes from the forward before and does not count.
    if (kind != NodeInput::Kind::kState)
      info.level = std::max(info.level, draft.graph->nodes[source].level + 1);
  }
}

void make_state(Draft& draft, std::size_t place) {
  StateSlot slot;
  slot.tag = draft.wanted(place).state_tag;
  slot.read = place;
  for (const InitialState& initial : draft.flow.initial_states()) {
    if (initial.tag != slot.tag)
      continue;
    slot.shape = initial.shape;
    slot.fill = initial.fill;
    slot.has_initial = true;
  }
  // Its one input comes later in the order; a state that nothing writes has been reported.
  NodeInfo& info = draft.graph->nodes[place];
  if (info.inputs.empty())
    return;
  slot.written = info.inputs.front().node;
  if (slot.has_initial && draft.spec != nullptr) {
    std::vector<std::int64_t> sizes{TensorSpec::kVaries};
    sizes.insert(sizes.end(), slot.shape.begin(), slot.shape.end());
    // As begin_states() makes it: one row for each row of the batch.
    info.result = TensorSpec(std::move(sizes), draft.spec->dtype);
  } else if (draft.spec != nullptr) {
    info.result = TensorSpec::absent();
  }
  draft.graph->states.push_back(std::move(slot));
}

/// Tells the graph and its listing of the callees of a place, and freezes them where it is frozen.
void note_callees(Draft& draft, std::size_t place, const std::vector<Callee>& callees) {
  Graph::Impl& graph = *draft.graph;
  NodeInfo& info = graph.nodes[place];
  bool begins = false;
  for (const Callee& callee : callees) {
    begins = begins || callee.ability<BeginsForward>() != nullptr;
    if (info.kind != NodeKind::kLayer)
      info.inside.push_back({callee.name(), callee.type(), callee.graph().get()});
    if (callee.graph())
      graph.levels = std::max(graph.levels, 1 + callee.graph()->impl().levels);
    // The parameters themselves: a module that is shared with another place is frozen there as
    // well.
    for (at::Tensor& parameter : callee.module()->parameters()) {
      if (info.frozen)
        parameter.set_requires_grad(false);
    }
  }
  if (begins)
    graph.tells_beginning.push_back(place);
}

/// A return before the end leaves the place without a node: a problem was added, here or at an
/// input.
void make_node_at(Draft& draft, std::size_t place) {
  std::vector<Callee> callees = make_callees(draft, place);
  if (callees.empty() || !order_references(draft, place, callees.front()))
    return;
  const WantedNode& wanted = draft.wanted(place);
  if (auto misfit = misfit_of_branches(wanted, callees)) {
    draft.complain(wanted.step, std::move(*misfit));
    return;
  }
  const auto further = further_outputs(draft, place, callees.front());
  if (!further)
    return;
  note_callees(draft, place, callees);
  Place& made = draft.graph->places[place];
  made.node = make_node(wanted, std::move(callees), *further);
  NodeInfo& info = draft.graph->nodes[place];
  for (const at::Tensor& parameter : made.node->parameters())
    info.parameters += parameter.numel();
  if (info.frozen && info.parameters == 0 && wanted.step->enabled) {
    draft.complain(wanted.step, "\"frozen\" has no effect: " + quote_text(info.type) +
                                    " has no parameters; leave it out");
  }
  if (made.node->repeats_its_parts()) {
    for (const Callee& callee : made.node->callees())
      mark_repeated(callee);
  }
  // After order_references(): a callee gets its inputs in this order.
  for (const NodeInput& input : info.inputs)
    made.inputs.push_back(input.node);
  infer_results(draft, place);
}

void make_place(Draft& draft, std::size_t place) {
  describe_place(draft, place);
  switch (draft.wanted(place).kind) {
    case NodeKind::kInput:
    case NodeKind::kOutput:
      break;
    case NodeKind::kState:
      make_state(draft, place);
      break;
    default:
      make_node_at(draft, place);
  }
}

std::shared_ptr<Graph> assemble(Draft draft) {
  const std::size_t before = draft.problems.size();
  if (!order_places(draft))
    return nullptr;
  describe_inputs(draft);
  for (std::size_t place = 0; place < draft.order.size(); ++place)
    make_place(draft, place);
  for (const Vertex output : draft.wired.outputs)
    draft.graph->outputs.push_back(draft.place_of[output]);
  draft.graph->groups = draft.wired.groups;
  // Without problems every place is complete: it has its node and, with sizes, its result.
  if (draft.problems.size() == before)
    check_states(draft);
  if (draft.problems.size() > before)
    return nullptr;
  prepare(*draft.graph);
  return std::make_shared<Graph>(std::move(draft.graph));
}

}  // namespace

std::shared_ptr<Graph> assemble_graph(const FlowBuilder& flow, const LayerSpec* spec,
                                      std::vector<Problem>& problems, std::size_t levels) {
  Wired wired = wire(flow);
  const bool is_wired = wired.problems.empty();
  std::move(wired.problems.begin(), wired.problems.end(), std::back_inserter(problems));
  // Sizes are checked even then, as far as they go: all mistakes at once.
  auto graph = assemble({flow, wired, spec, problems, levels});
  return is_wired ? graph : nullptr;
}

std::shared_ptr<Graph> assemble_graph(const FlowBuilder& flow, const LayerSpec* spec) {
  std::vector<Problem> problems;
  if (auto why = why_too_deep(flow, 1)) {
    problems.push_back(problem_of(flow, nullptr, std::move(*why)));
    throw DocumentError(std::move(problems));
  }
  auto graph = assemble_graph(flow, spec, problems, 1);
  if (!problems.empty()) {
    // In the order of the text: structure and sizes are looked at one after the other.
    std::stable_sort(problems.begin(), problems.end(), [](const Problem& a, const Problem& b) {
      return std::pair(a.place.line, a.place.column) < std::pair(b.place.line, b.place.column);
    });
    throw DocumentError(std::move(problems));
  }
  return graph;
}

}  // namespace treadle::graph

#include "run/trunk.h"

#include <algorithm>
#include <utility>

#include "forward/failure.h"
#include "forward/gradient_order.h"
#include "run/graph_data.h"
#include "run/place_text.h"

#include <treadle/core/model/abilities/acts_on_positions.h>

namespace treadle::graph {
namespace {

bool is_read_elsewhere(const GraphStructure& graph, std::size_t place) {
  const auto reads = [&](const Place& other) {
    return std::find(other.inputs.begin(), other.inputs.end(), place) != other.inputs.end();
  };
  return std::any_of(graph.places.begin(), graph.places.end(), reads) ||
         std::any_of(graph.states.begin(), graph.states.end(),
                     [&](const StateSlot& state) { return state.written == place; }) ||
         std::any_of(graph.logged.begin(), graph.logged.end(), [&](const auto& logged) {
           return logged.within.empty() ? logged.tag_slot == graph.places[place].tag_slot
                                        : logged.within.front() == place;
         });
}

/// A node that calls one thing once, with one input and one output.
const Callee* only_callee(const GraphStructure& graph, std::size_t index) {
  const Place& place = graph.places[index];
  const NodeKind kind = graph.nodes[index].kind;
  if (place.node == nullptr || (kind != NodeKind::kLayer && kind != NodeKind::kGraph) ||
      place.group || !place.further.empty() || place.inputs.size() != 1)
    return nullptr;
  return &place.node->main();
}

bool is_head(const Callee& callee) {
  const auto* const acts = callee.ability<ActsOnPositions>();
  return acts != nullptr && acts->acts_on_positions() && !callee.keeps_state() && !callee.reports();
}

}  // namespace

std::optional<Trunk> trunk_of(const Graph& graph) {
  const Graph::Impl& whole = graph.impl();
  if (whole.outputs.size() != 1 || whole.output_widths.size() > 1)
    return std::nullopt;
  const std::size_t last = whole.outputs.front();
  const Callee* const callee = only_callee(whole, last);
  if (callee == nullptr || is_read_elsewhere(whole, last))
    return std::nullopt;
  GraphStructure structure = whole;
  structure.output_widths.clear();
  if (callee->graph() != nullptr) {
    std::optional<Trunk> within = trunk_of(*callee->graph());
    if (!within)
      return std::nullopt;
    structure.places[last].node =
        make_call_node(Callee(callee->name(), callee->type(), within->graph), {});
    within->graph = std::make_shared<Graph>(std::make_unique<Graph::Impl>(std::move(structure)));
    return within;
  }
  if (!is_head(*callee) || whole.places[last].is_shared.front())
    return std::nullopt;
  structure.outputs = {whole.places[last].inputs.front()};
  // As a place whose value is given, that nothing reads.
  structure.places[last].node = nullptr;
  structure.places[last].done.clear();
  return Trunk{std::make_shared<Graph>(std::make_unique<Graph::Impl>(std::move(structure))), &whole,
               last};
}

DeferredOutput Trunk::deferred(at::Tensor features, const ForwardContext& context) const {
  const Node& node = *head_graph->places[head].node;
  const auto run = [graph = head_graph, place = head, stop = context.stop(),
                    truncates = context.truncates_bptt()](const at::Tensor& part) {
    try {
      try {
        Callee::State state;
        return contiguous_with_gradient(
            graph->places[place].node->main().call({&part, 1}, state, {stop, truncates}));
      } catch (...) {
        rethrow_failed(node_text(graph->nodes[place]),
                       failed_text(*graph, place, {sizes_text(part)}));
      }
    } catch (const Failure& failure) {
      failure.raise();
    }
  };
  return {std::move(features), run, node.parameters()};
}

}  // namespace treadle::graph

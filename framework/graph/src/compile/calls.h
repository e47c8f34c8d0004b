#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include <treadle/plan/call.h>
#include <treadle/plan/run.h>

#include "run/graph_data.h"

namespace treadle::graph {

/// Where a callee or node finds the state of its stream: (place, callee) of each graph on the way
/// down from the one that is compiled.
using StatePath = std::vector<std::pair<std::size_t, std::size_t>>;

/// The state of the graph that the first `steps` of a path lead to.
GraphState::Data& graph_state(GraphState::Data& top, const StatePath& path, std::size_t steps);

/// What the calls of a graph's plan find in plan::Run::context.
struct GraphCallContext final : plan::CallContext {
  GraphCallContext(GraphState::Data& state, const ForwardScope& scope)
      : state(state), scope(scope) {}

  GraphState::Data& state;  ///< of the graph that is compiled
  const ForwardScope& scope;
};

// Opaque calls of a plan. They refer to the graph, whose plans live in it.

/// A layer or a graph within a node. The path ends with it.
std::shared_ptr<const plan::PlanCall> call_of_callee(const Callee& callee, StatePath path);
/// A whole node: all its outputs. The path ends with its place; the callee there is not used.
std::shared_ptr<const plan::PlanCall> call_of_node(const Node& node, StatePath path);
/// Branches that run concurrently, as in a dynamic graph; a result for each of the group's places.
/// `seed`: an index of plan::Run::seeds. The path leads to `graph`.
std::shared_ptr<const plan::PlanCall> call_of_group(const Graph::Impl& graph,
                                                    const BranchGroup& group, std::size_t seed,
                                                    StatePath path);

}  // namespace treadle::graph

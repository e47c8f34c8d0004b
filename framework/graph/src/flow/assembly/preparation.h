#pragma once

#include "run/graph_data.h"
#include "run/node.h"

namespace treadle::graph {

/// Prepares a graph whose places are complete for execution. In this order: freeing (the last use
/// of each value), sharing (the inputs that need an accumulation point, see
/// forward/gradient_order.h), branches (places of one level that may run concurrently). Tags,
/// outputs and states count as users, because their receivers may differentiate them.
void prepare(Graph::Impl& graph);

/// Marks all graphs within a callee as repeated, at any depth, also those in layers (GraphLayer,
/// recompute).
void mark_repeated(const Callee& callee);

}  // namespace treadle::graph

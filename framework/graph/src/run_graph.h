#pragma once

#include <stop_token>

#include "graph_data.h"

namespace treadle::graph {

/// Runs every place in order. Throws a Failure, or what passes rethrow_failed(). Values stay in
/// `state` only where they are tagged.
void run_graph(const Graph::Impl& graph, const Inputs& inputs, GraphState::Data& state,
               const std::stop_token& stop, std::vector<at::Tensor>& outputs);

}  // namespace treadle::graph

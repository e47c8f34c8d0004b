#pragma once

#include <functional>
#include <optional>

#include "run/node.h"

namespace treadle::graph {

/// The operations of Graph::training_work() in the layers that `counts` accepts, those of graphs
/// within included. Nothing if the sizes are unknown.
std::optional<double> operations_in(const Graph& graph,
                                    const std::function<bool(const Callee&)>& counts);

}  // namespace treadle::graph

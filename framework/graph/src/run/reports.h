#pragma once

#include <functional>
#include <string>
#include <vector>

#include "run/graph_data.h"

#include <treadle/core/model/abilities/adds_losses.h>

namespace treadle::graph {

/// Begins a forward in which layers may log or add losses; graphs within included. Drops what a
/// forward that failed left.
void begin_reports(const Graph::Impl& graph, GraphState::Data& state, bool logs, bool losses);

/// Hands over what layers reported in that forward: nodes in their order, and of each node calls in
/// theirs, however the graph ran. Names are those of parameters: "<node>.<name>".
void hand_over_reports(const Graph::Impl& graph, GraphState::Data& state,
                       const std::function<void(LayerReports::Report&& report)>& take);

/// The names that layers declare, in the same order.
std::vector<std::string> logged_names(const Graph::Impl& graph);
std::vector<std::string> loss_names(const Graph::Impl& graph);

}  // namespace treadle::graph

#pragma once

#include <memory>
#include <vector>

#include <treadle/base/problem.h>
#include <treadle/core/model/layer.h>
#include <treadle/graph/flow_builder.h>

namespace treadle::graph {

/// Wires a flow, makes its layers and checks sizes. `spec` null: sizes are not known. With any
/// problem: null, and `problems` has all of them. `levels`: how many flows stand in each other
/// here, this one included.
std::shared_ptr<Graph> assemble_graph(const FlowBuilder& flow, const LayerSpec* spec,
                                      std::vector<Problem>& problems, std::size_t levels);
/// The same, throwing them as a DocumentError.
std::shared_ptr<Graph> assemble_graph(const FlowBuilder& flow, const LayerSpec* spec);

}  // namespace treadle::graph

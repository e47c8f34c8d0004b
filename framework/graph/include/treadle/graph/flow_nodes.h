#pragma once

#include <string>
#include <vector>

#include <treadle/graph/flow_builder.h>

namespace treadle::graph {

/// The ids of the nodes that each step of a flow makes: one for most steps, one for each branch of
/// a split, none for `input` and `at`. With them the names of parameters begin. Of a flow with
/// mistakes, the ids that its steps would have.
std::vector<std::vector<std::string>> node_ids(const FlowBuilder& flow);

/// Whether a flow within another one is no graph of its own: it is a single step that says nothing
/// else, such as a nameless layer. Names of parameters then lack the id of that step.
bool is_single_part(const FlowBuilder& flow);

}  // namespace treadle::graph

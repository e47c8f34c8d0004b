#pragma once

#include <string>
#include <utility>
#include <vector>

#include <treadle/base/problem.h>
#include <treadle/graph/flow_builder.h>

#include "flow/description.h"

namespace treadle::graph {

/// The nodes and edges of the steps of a flow, and all mistakes in the steps. Points to the steps
/// (WantedNode::step), so the flow must outlive it.
struct Wired {
  Description description;
  std::vector<Vertex> inputs;            ///< in order
  std::vector<std::string> input_names;  ///< of those after the first
  std::vector<Vertex> outputs;
  std::vector<std::pair<std::string, std::vector<std::string>>> groups;
  std::vector<Problem> problems;
};
Wired wire(const FlowBuilder& flow);

/// A problem of a step: with its place when it was read from a document, else with its number.
Problem problem_of(const FlowBuilder& flow, const FlowStep* step, std::string message);

}  // namespace treadle::graph

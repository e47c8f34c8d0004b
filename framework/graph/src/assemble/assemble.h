#pragma once

#include <memory>
#include <vector>

#include <treadle/base/problem.h>
#include <treadle/core/layer.h>
#include <treadle/graph/flow_builder.h>

#include "assemble/description.h"

namespace treadle::graph {

/// What the steps of a flow come to: nodes and edges, and all that is wrong with the steps.
struct Wired {
  Description description;
  std::vector<Vertex> inputs;            ///< in order
  std::vector<std::string> input_names;  ///< of those after the first
  std::vector<Vertex> outputs;
  std::vector<std::pair<std::string, std::vector<std::string>>> groups;
  std::vector<Problem> problems;
};
Wired wire(const FlowBuilder& flow);

/// Flows and graphs within each other: a forward goes as deep on the stack, and so does building.
inline constexpr std::size_t kMostLevels = 100;

/// Wires a flow, makes its layers and checks sizes. `spec` null: sizes are not known. With any
/// problem: null, and `problems` has all of them. `levels`: how many flows stand in each other
/// here, this one included.
std::shared_ptr<Graph> assemble_graph(const FlowBuilder& flow, const LayerSpec* spec,
                                      std::vector<Problem>& problems, std::size_t levels);
/// The same, throwing them as a DocumentError.
std::shared_ptr<Graph> assemble_graph(const FlowBuilder& flow, const LayerSpec* spec);

/// A problem of a step: with its place when it was read from a document, else with its number.
Problem problem_of(const FlowBuilder& flow, const FlowStep* step, std::string message);

}  // namespace treadle::graph

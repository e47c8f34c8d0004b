#pragma once

#include <string>
#include <vector>

#include <boost/graph/adjacency_list.hpp>

#include <treadle/graph/graph.h>

#include "flow/flow_step.h"

namespace treadle::graph {

/// A node that is wanted. What it is made of is in its step.
struct WantedNode {
  std::string id;
  std::string type;
  NodeKind kind = NodeKind::kLayer;
  std::vector<Part> parts = {};
  const FlowStep* step = nullptr;  ///< options and place; null for what no step asked for by itself
  std::vector<std::string> tags = {};
  std::string state_tag = {};  ///< kState: whose value it holds
};

/// From a node to a port of another.
struct WantedEdge {
  std::string port;
  NodeInput::Kind kind = NodeInput::Kind::kStream;
};

/// Nodes and edges, in the order in which a flow speaks of them.
using Description =
    boost::adjacency_list<boost::vecS, boost::vecS, boost::bidirectionalS, WantedNode, WantedEdge>;
using Vertex = Description::vertex_descriptor;

/// An order in which every node comes after what it needs, and otherwise the nodes' own. State
/// edges order nothing. Where there is no such order, `cycle` gets the ids along one.
std::vector<Vertex> execution_order(const Description& description,
                                    std::vector<std::string>& cycle);

}  // namespace treadle::graph

#pragma once

#include <string>

#include "flow/wiring/node_ids.h"
#include "flow/wiring/wire.h"

namespace treadle::graph {

/// The nodes and edges of a flow while its steps are wired, one after the other. wire() makes one
/// and passes it through the classes of this folder. The flow must outlive it, and the description
/// as well, whose nodes point to their steps.
///
/// Two orders in the description decide behaviour, and so are kept by all verbs:
/// - Vertices are added in the order of the flow. execution_order() keeps it among independent
///   nodes, and with it the order of parameters, gradients and saved files.
/// - Edges into a vertex are added in the order of the callee's inputs: the stream, or all streams
///   of a merge, then the references. assemble.cpp reads the inputs from them.
struct Netlist {
  explicit Netlist(const FlowBuilder& flow);

  const FlowBuilder& flow;
  const FlowStep* step = nullptr;  ///< the present one; null before the first and after the last
  Wired wired;
  NodeIds ids;

  /// Adds a problem of the present step, or of the flow where there is none.
  void complain(std::string message);

  /// The name, or a generated id where it is empty or, with a problem added, cannot be an id.
  std::string id_of(const std::string& name, const std::string& type);
  /// Adds a node of the present step.
  Vertex add(WantedNode node);
  Vertex add_part(const Part& part, const std::string& name);
  Vertex add_input(const std::string& name);

  void connect(Vertex from, Vertex to, std::string port,
               NodeInput::Kind kind = NodeInput::Kind::kStream);
  void connect_stream(Vertex from, Vertex to) { connect(from, to, std::string(kDefaultInput)); }
};

}  // namespace treadle::graph

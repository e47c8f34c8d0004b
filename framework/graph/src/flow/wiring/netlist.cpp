#include "flow/wiring/netlist.h"

#include <utility>

namespace treadle::graph {
namespace {

std::set<std::string> names_of_steps(const FlowBuilder& flow) {
  std::set<std::string> names;
  for (const FlowStep& step : flow.steps()) {
    if (!step.name.empty())
      names.insert(step.name);
  }
  return names;
}

}  // namespace

Netlist::Netlist(const FlowBuilder& flow) : flow(flow), ids(names_of_steps(flow)) {}

void Netlist::complain(std::string message) {
  wired.problems.push_back(problem_of(flow, step, std::move(message)));
}

std::string Netlist::id_of(const std::string& name, const std::string& type) {
  if (name.empty())
    return ids.next(type);
  auto mistake = ids.claim(name);
  if (!mistake)
    return name;
  // A generated id stands in, so that wiring goes on.
  complain(std::move(*mistake));
  return ids.next(type);
}

Vertex Netlist::add(WantedNode node) {
  node.step = step;
  // Not in one call: GCC 12 with sanitizers warns of Boost's code for it.
  const Vertex vertex = boost::add_vertex(wired.description);
  wired.description[vertex] = std::move(node);
  return vertex;
}

Vertex Netlist::add_part(const Part& part, const std::string& name) {
  const bool is_graph = part.flow() || part.graph() || part.build_flow();
  const NodeKind kind = is_graph ? NodeKind::kGraph : NodeKind::kLayer;
  return add({.id = id_of(name, part.type()), .type = part.type(), .kind = kind, .parts = {part}});
}

Vertex Netlist::add_input(const std::string& name) {
  ids.add_input(name);
  const Vertex vertex = add({.id = name, .type = "input", .kind = NodeKind::kInput});
  wired.inputs.push_back(vertex);
  return vertex;
}

void Netlist::connect(Vertex from, Vertex to, std::string port, NodeInput::Kind kind) {
  boost::add_edge(from, to, WantedEdge{std::move(port), kind}, wired.description);
}

}  // namespace treadle::graph

#include <treadle/graph/graph_wiring.h>

#include <map>
#include <set>
#include <utility>

#include <boost/range/iterator_range.hpp>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/near_miss.h>
#include <treadle/base/problem.h>
#include <treadle/graph/ready_parts.h>

#include "flow/description.h"

// Orders nodes that are given by name, drops those that no output needs, and writes a flow of
// merges: the rest of this room sees only flows.

namespace treadle::graph {
namespace {

Problem problem(std::string message) {
  Problem problem;
  problem.message = std::move(message);
  return problem;
}

/// The vertices without which these could not be run.
std::set<Vertex> needed_by(const Description& description, std::vector<Vertex> open) {
  std::set<Vertex> needed;
  while (!open.empty()) {
    const Vertex vertex = open.back();
    open.pop_back();
    if (!needed.insert(vertex).second)
      continue;
    for (const auto& edge : boost::make_iterator_range(boost::in_edges(vertex, description)))
      open.push_back(boost::source(edge, description));
  }
  return needed;
}

}  // namespace

GraphWiring::GraphWiring(std::vector<std::string> inputs) : inputs_(std::move(inputs)) {
  TREADLE_EXPECTS(!inputs_.empty(), "a graph has at least one input");
}

GraphWiring& GraphWiring::node(std::string name, const Part& part, std::vector<std::string> from) {
  nodes_.push_back({std::move(name), part, std::move(from)});
  return *this;
}

GraphWiring& GraphWiring::constant(std::string name, const at::Tensor& row) {
  return node(std::move(name), graph::constant(row), {inputs_.front()});
}

GraphWiring& GraphWiring::parameter(std::string name, std::vector<std::int64_t> shape, double mean,
                                    double std) {
  return node(std::move(name), graph::parameter(std::move(shape), mean, std), {inputs_.front()});
}

FlowBuilder GraphWiring::flow(const std::vector<std::string>& outputs) const {
  std::vector<Problem> problems;
  Description description;
  std::map<std::string, Vertex, std::less<>> vertices;
  std::vector<std::string> names;
  const auto declare = [&](const std::string& name) {
    const Vertex vertex = boost::add_vertex(description);
    description[vertex].id = name;
    names.push_back(name);
    if (!vertices.emplace(name, vertex).second)
      problems.push_back(problem("two nodes or inputs are named " + quote_text(name)));
  };
  for (const std::string& input : inputs_)
    declare(input);
  for (const WiredNode& node : nodes_)
    declare(node.name);

  const auto unknown = [&](const std::string& who, const std::string& name) {
    problems.push_back(problem(who + " needs " + quote_text(name) + ", which is no node or input" +
                               did_you_mean(name, names)));
  };
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].from.empty())
      problems.push_back(
          problem(quote_text(nodes_[i].name) +
                  " is given nothing; of all nodes only a constant() or a parameter() needs no "
                  "input"));
    for (const std::string& source : nodes_[i].from) {
      const auto found = vertices.find(source);
      if (found == vertices.end()) {
        unknown(quote_text(nodes_[i].name), source);
      } else {
        boost::add_edge(found->second, inputs_.size() + i, WantedEdge(), description);
      }
    }
  }
  std::vector<Vertex> ends;
  for (const std::string& output : outputs) {
    const auto found = vertices.find(output);
    if (found == vertices.end()) {
      unknown("the output", output);
    } else {
      ends.push_back(found->second);
    }
  }
  if (outputs.empty())
    problems.push_back(problem("no output is named; a graph gives the value of one node at least"));
  std::vector<std::string> cycle;
  const std::vector<Vertex> order = execution_order(description, cycle);
  if (!cycle.empty()) {
    std::string way;
    for (const std::string& name : cycle)
      way += (way.empty() ? "" : " -> ") + name;
    problems.push_back(problem("the graph has a cycle: " + way));
  }
  if (!problems.empty())
    throw DocumentError(std::move(problems));

  FlowBuilder flow;
  flow.tag(inputs_.front());
  if (inputs_.size() > 1)
    flow.input({inputs_.begin() + 1, inputs_.end()});
  const std::set<Vertex> needed = needed_by(description, ends);
  for (const Vertex vertex : order) {
    if (vertex < inputs_.size() || needed.count(vertex) == 0)
      continue;
    const WiredNode& node = nodes_[vertex - inputs_.size()];
    flow.at(node.from);
    if (node.from.size() == 1) {
      flow.through(node.part);
    } else {
      flow.merge(node.part);
    }
    flow.named(node.name).tag(node.name);
  }
  return flow.outputs(outputs);
}

std::shared_ptr<Graph> GraphWiring::build(const std::vector<std::string>& outputs,
                                          const LayerSpec& spec) const {
  return flow(outputs).build(spec);
}

std::shared_ptr<Graph> GraphWiring::build(const std::vector<std::string>& outputs) const {
  return flow(outputs).build();
}

}  // namespace treadle::graph

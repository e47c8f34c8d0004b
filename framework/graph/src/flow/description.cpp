#include "flow/description.h"

#include <algorithm>
#include <functional>
#include <queue>

#include <boost/range/iterator_range.hpp>

// The order in which nodes run, and the text of a cycle where there is none. Among nodes that are
// ready, the one that stands first in the flow comes first. The order decides names, parameters and
// the sums of gradients, so it must depend on nothing else.

namespace treadle::graph {
namespace {

bool orders(const Description& description, const Description::edge_descriptor& edge) {
  return description[edge].kind != NodeInput::Kind::kState;
}

/// Follows, from a node that never became ready, inputs that did not either, until a node comes
/// again.
std::vector<std::string> cycle_through(const Description& description, Vertex start,
                                       const std::vector<std::size_t>& waits_for) {
  std::vector<Vertex> way;
  Vertex at = start;
  while (std::find(way.begin(), way.end(), at) == way.end()) {
    way.push_back(at);
    for (const auto& edge : boost::make_iterator_range(boost::in_edges(at, description))) {
      const Vertex source = boost::source(edge, description);
      if (orders(description, edge) && waits_for[source] > 0) {
        at = source;
        break;
      }
    }
  }
  std::vector<std::string> names{description[at].id};
  for (auto vertex = way.rbegin(); *vertex != at; ++vertex)
    names.push_back(description[*vertex].id);
  names.push_back(description[at].id);
  return names;
}

}  // namespace

// Kahn's algorithm. boost::topological_sort would give an order that depends on how it walks.
std::vector<Vertex> execution_order(const Description& description,
                                    std::vector<std::string>& cycle) {
  const std::size_t count = boost::num_vertices(description);
  std::vector<std::size_t> waits_for(count, 0);
  std::priority_queue<Vertex, std::vector<Vertex>, std::greater<>> ready;
  for (Vertex vertex = 0; vertex < count; ++vertex) {
    for (const auto& edge : boost::make_iterator_range(boost::in_edges(vertex, description)))
      waits_for[vertex] += orders(description, edge) ? 1 : 0;
    if (waits_for[vertex] == 0)
      ready.push(vertex);
  }
  std::vector<Vertex> order;
  while (!ready.empty()) {
    const Vertex vertex = ready.top();
    ready.pop();
    order.push_back(vertex);
    for (const auto& edge : boost::make_iterator_range(boost::out_edges(vertex, description))) {
      const Vertex target = boost::target(edge, description);
      if (orders(description, edge) && --waits_for[target] == 0)
        ready.push(target);
    }
  }
  if (order.size() < count) {
    const auto stuck =
        std::find_if(waits_for.begin(), waits_for.end(), [](std::size_t n) { return n > 0; });
    cycle = cycle_through(description, static_cast<Vertex>(stuck - waits_for.begin()), waits_for);
  }
  return order;
}

}  // namespace treadle::graph

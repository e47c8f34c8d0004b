#include <algorithm>

#include "forward/stands_for_body.h"
#include "run/graph_data.h"
#include "run/graphs_within.h"

namespace treadle::graph {
namespace {

const Graph* graph_of(const Callee& callee) {
  if (callee.graph() != nullptr)
    return callee.graph().get();
  if (const auto* const stands_for = callee.ability<StandsForBody>())
    return stands_for->body();
  const auto children = callee.module()->children();
  return children.size() == 1 ? dynamic_cast<const Graph*>(children.front().get()) : nullptr;
}

/// Goes from a graph's outputs towards its inputs.
class Search {
 public:
  explicit Search(std::vector<at::Tensor>& found) : found_(found) {}

  /// Whether a matrix is behind every output.
  bool look_in(const Graph& graph) {
    std::vector<bool> seen(graph.impl().places.size(), false);
    bool has_all = true;
    for (const std::size_t place : graph.impl().outputs)
      has_all = look_at(graph.impl(), place, seen) && has_all;
    return has_all;
  }

 private:
  bool look_at(const GraphStructure& graph, std::size_t index, std::vector<bool>& seen) {
    if (seen[index])
      return true;
    seen[index] = true;
    const Place& place = graph.places[index];
    if (place.node != nullptr) {
      // Of a mixture the experts and the router, of a loop the body and the condition.
      const std::vector<Callee>& callees = place.node->callees();
      const auto has_matrix = [&](const Callee& callee) { return look_in(callee); };
      if (std::count_if(callees.begin(), callees.end(), has_matrix) > 0)
        return true;
    }
    bool has_all = !place.inputs.empty();
    for (const std::size_t input : place.inputs)
      has_all = look_at(graph, input, seen) && has_all;
    return has_all;
  }

  bool look_in(const Callee& callee) {
    if (const Graph* const within = graph_of(callee))
      return look_in(*within);
    const std::vector<at::Tensor> its = callee.module()->parameters();
    const bool has_matrix =
        std::any_of(its.begin(), its.end(), [](const at::Tensor& one) { return one.dim() > 1; });
    if (has_matrix)
      found_.insert(found_.end(), its.begin(), its.end());
    return has_matrix;
  }

  std::vector<at::Tensor>& found_;
};

}  // namespace

std::vector<at::Tensor> output_layer_parameters(const Graph& graph) {
  std::vector<at::Tensor> found;
  Search(found).look_in(graph);
  return found;
}

}  // namespace treadle::graph

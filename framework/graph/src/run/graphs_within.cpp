#include "run/graphs_within.h"

#include "forward/stands_for_body.h"
#include "run/graph_data.h"

namespace treadle::graph {
namespace {

void add_graphs(const torch::nn::Module& module, std::vector<Graph*>& found) {
  for (const auto& one : module.modules()) {
    auto* graph = dynamic_cast<Graph*>(one.get());
    if (graph == nullptr)
      continue;
    found.push_back(graph);
    for (const Place& place : graph->impl().places) {
      if (place.node == nullptr)
        continue;
      for (const Callee& callee : place.node->callees()) {
        const auto* stands_for = callee.ability<StandsForBody>();
        if (stands_for != nullptr && stands_for->body() != nullptr)
          add_graphs(*stands_for->body(), found);
      }
    }
  }
}

}  // namespace

std::vector<Graph*> graphs_within(const torch::nn::Module& module) {
  std::vector<Graph*> found;
  add_graphs(module, found);
  return found;
}

}  // namespace treadle::graph

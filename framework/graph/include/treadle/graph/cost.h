#pragma once

#include <cstdint>
#include <vector>

#include <treadle/graph/graph.h>

namespace treadle::graph {

/// The cost of a node in a forward pass.
struct NodeCost {
  std::int64_t bytes = 0;  ///< of what it gives
  /// Floating-point operations of products, convolutions, and sums and products of elements, as
  /// libtorch's profiler counts them: a multiplication and an addition are two. Other functions
  /// count for nothing.
  std::int64_t operations = 0;
};

/// Of each of graph.nodes(), graphs within included, found by a forward of so many rows of zeros in
/// evaluation. Expects a graph whose inputs' sizes are known, and no other forward meanwhile.
std::vector<NodeCost> costs(Graph& graph, std::int64_t rows = 1);

}  // namespace treadle::graph

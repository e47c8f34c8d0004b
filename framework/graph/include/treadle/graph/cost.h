#pragma once

#include <cstdint>
#include <vector>

#include <treadle/graph/graph.h>

namespace treadle::graph {

/// What a node costs in a forward.
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

/// What a training step computes and moves for each row of its batch.
struct RowWork {
  double operations = 0;  ///< floating-point operations
  double bytes = 0;       ///< of values and of their gradients, read and written

  RowWork& operator+=(const RowWork& other) {
    operations += other.operations;
    bytes += other.bytes;
    return *this;
  }
};

/// Estimated from sizes alone, without a forward: the same on every machine and with every
/// libtorch. Expects a graph whose inputs' sizes are known.
///
/// Products of weights count, with both gradients three times the forward; products of values with
/// each other (attention scores) do not. A loop counts with the most rounds it may make, a branch
/// of a switch with its share, a size that the data decides as 64.
RowWork training_work(const Graph& graph);

}  // namespace treadle::graph

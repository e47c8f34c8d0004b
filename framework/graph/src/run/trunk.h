#pragma once

#include <memory>
#include <optional>

#include <treadle/core/model/forward_context.h>
#include <treadle/core/training/chunked_loss.h>

namespace treadle::graph {

class Graph;
struct GraphStructure;

/// A graph without its last layer, and that layer, where it acts on each position by itself: a
/// model whose output can be deferred. The modules are the graph's own.
struct Trunk {
  std::shared_ptr<Graph> graph;
  /// The graph that the layer is in, which may be one within, and its place there. Borrowed.
  const GraphStructure* head_graph = nullptr;
  std::size_t head = 0;

  /// Of the features that the trunk gave in a forward with `context`.
  DeferredOutput deferred(at::Tensor features, const ForwardContext& context) const;
};

/// Nothing where the graph has several outputs, where its last layer does not act on positions, or
/// where something else reads what the layer takes or gives.
std::optional<Trunk> trunk_of(const Graph& graph);

}  // namespace treadle::graph

#pragma once

namespace treadle::graph {

class Graph;

/// A layer whose body's nodes are registered, and so name parameters, as if they stood in the graph
/// around it.
class StandsForBody {
 public:
  virtual ~StandsForBody() = default;
  /// Null: the layer is registered itself.
  virtual const Graph* body() const = 0;
};

}  // namespace treadle::graph

#pragma once

#include <memory>
#include <vector>

#include <treadle/graph/graph.h>
#include <treadle/graph/graph_state.h>

#include "run/forward_scope.h"

namespace treadle::graph {

/// How forwards of a graph run: node by node, or as a plan (compile/compiled.h). A Graph owns one
/// and knows no more of it, so that the dynamic half of this room does not depend on the compiled
/// one. Used by several threads at once, each with a state of its own.
class Executor {
 public:
  virtual ~Executor() = default;

  virtual Execution execution() const = 0;

  /// `inputs` are contiguous, one for each of the graph's. Throws a Failure, or what passes
  /// rethrow_failed().
  virtual void run(const Graph& graph, const Inputs& inputs, GraphState::Data& state,
                   const ForwardScope& scope, std::vector<at::Tensor>& outputs) = 0;
};

std::unique_ptr<Executor> make_dynamic_executor();

}  // namespace treadle::graph

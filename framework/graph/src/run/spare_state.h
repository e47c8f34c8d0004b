#pragma once

#include <memory>

#include "run/graph_data.h"

namespace treadle::graph {

/// A state for one forward without a stream, borrowed from the graph's pool and given back empty.
class SpareState {
 public:
  explicit SpareState(const Graph& graph);
  ~SpareState();
  SpareState(const SpareState&) = delete;
  SpareState& operator=(const SpareState&) = delete;

  GraphState& operator*() { return *state_; }
  GraphState* operator->() { return state_.get(); }

 private:
  const Graph::Impl& impl_;
  std::unique_ptr<GraphState> state_;
};

}  // namespace treadle::graph

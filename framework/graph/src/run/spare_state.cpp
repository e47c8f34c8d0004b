#include "run/spare_state.h"

#include <utility>

// States for forwards that bring none. The pool grows to the number of forwards that ever ran at
// once.

namespace treadle::graph {
namespace {

/// Tagged values and traces that nobody can ask for would only keep memory alive.
void keep_no_tags(GraphState::Data& data) {
  data.keeps_tags = false;
  for (at::Tensor& tag : data.tags)
    tag.reset();
  for (NodeState& node : data.nodes) {
    node.keeps_traces = false;
    for (Callee::State& callee : node.callees) {
      if (callee.graph)
        keep_no_tags(callee.graph->data());
    }
  }
}

}  // namespace

SpareState::SpareState(const Graph& graph) : impl_(graph.impl()) {
  {
    const std::lock_guard lock(impl_.spare_mutex);
    if (!impl_.spare.empty()) {
      state_ = std::move(impl_.spare.back());
      impl_.spare.pop_back();
    }
  }
  if (state_ == nullptr) {
    state_ = std::make_unique<GraphState>(graph);
    keep_no_tags(state_->data());
  }
}

SpareState::~SpareState() {
  if (state_->keeps_state())
    state_->reset();
  if (state_->data().keeps_tags)  // the forward failed
    keep_no_tags(state_->data());
  const std::lock_guard lock(impl_.spare_mutex);
  impl_.spare.push_back(std::move(state_));
}

}  // namespace treadle::graph

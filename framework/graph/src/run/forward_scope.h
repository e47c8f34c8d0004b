#pragma once

#include <stop_token>
#include <string>

#include <treadle/graph/graph_state.h>

namespace treadle::graph {

/// What holds for one forward of a graph, and for everything within: graphs, rounds, branches on
/// other threads, calls of a plan. Made where the forward begins, and passed on as it is.
struct ForwardScope {
  std::stop_token stop = {};
  /// See ForwardContext::truncates_bptt(). State is then detached where they are
  /// read, and what a loop hands on where the next round takes it.
  bool truncates_bptt = false;
  /// See ForwardContext::calls_layers().
  bool calls_layers = false;
  /// See GraphState::on_each_node(); null: nobody is told. It outlives the forward.
  const NodeHook* hook = nullptr;
  /// Where the graph stands for it: "", "encoder.".
  std::string within = {};
};

}  // namespace treadle::graph

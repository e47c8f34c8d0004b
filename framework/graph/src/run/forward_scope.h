#pragma once

#include <stop_token>

namespace treadle::graph {

/// What holds for one forward of a graph, and for everything within: graphs, rounds, branches on
/// other threads, calls of a plan. Made where the forward begins, and passed on as it is.
struct ForwardScope {
  std::stop_token stop = {};
  /// See ForwardContext::truncates_bptt(). State is then detached where they are
  /// read, and what a loop hands on where the next round takes it.
  bool truncates_bptt = false;
};

}  // namespace treadle::graph

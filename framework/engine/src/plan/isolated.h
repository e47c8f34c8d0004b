#pragma once

#include <utility>

#include <oneapi/tbb/task_arena.h>

namespace treadle::engine {

/// The body of a node in which code of plugins runs: while that waits for parallel work of its own,
/// its thread takes part in nothing else. It may hold a lock, and another node may call the same
/// plugin (docs/guide/plugins/README.md). What is put into a graph within belongs to nobody's wait
/// but the graph's.
template <typename Body>
decltype(auto) isolated(Body&& body) {
  return oneapi::tbb::this_task_arena::isolate(std::forward<Body>(body));
}

}  // namespace treadle::engine

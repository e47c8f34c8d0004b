#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <vector>

#include <treadle/graph/graph.h>
#include <treadle/graph/graph_state.h>

namespace treadle::graph {

/// Places that do not need each other's values: the branches of a split, the experts of a mixture.
/// They run one after the other or concurrently, with the same bits: each draws from a random
/// stream of its own, and gradients are added in one order (run/gradient_order.h).
struct BranchGroup {
  std::vector<std::size_t> places;   ///< in order
  std::vector<std::size_t> sources;  ///< the places they take values of, each once
  /// For each of `places`, for each of its inputs: which of `sources`.
  std::vector<std::vector<std::size_t>> inputs;

  /// Where both hold, concurrent branches would sum gradients in another order than one by one: a
  /// branch uses a weight more than once, and one backward passes the group several times.
  bool adds_up_within = false;
  bool is_repeated = false;
  bool must_run_one_by_one() const { return adds_up_within && is_repeated; }
};

/// Whether they would run concurrently now.
bool runs_in_parallel(const BranchGroup& group, Branches branches);

/// The groups of a graph: places of one level. Without places that are stateful, and none where
/// branches share parameters, whose gradients would be summed elsewhere.
std::vector<BranchGroup> find_branch_groups(const Graph::Impl& graph);

/// Runs the places of a group; `run(place, inputs)` is what one does. Their values are in `values`
/// afterwards.
void run_branches(const BranchGroup& group, Branches branches, std::uint64_t seed,
                  const std::vector<std::vector<at::Tensor>>& parameters,
                  std::vector<at::Tensor>& values,
                  const std::function<at::Tensor(std::size_t place, const Inputs& inputs)>& run);

}  // namespace treadle::graph

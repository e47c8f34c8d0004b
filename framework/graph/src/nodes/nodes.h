#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <treadle/graph/control_flow.h>

#include "run/node.h"

namespace treadle::graph {

/// How a loop ends; kUnfinished: a flow has not defined it yet.
enum class LoopKind { kUnfinished, kTimes, kWhile, kUntil, kAdaptive };

// Callees as in FlowStep::parts. Options have been checked.
/// Not of an adaptive loop.
std::unique_ptr<Node> make_loop_node(std::vector<Callee> callees, LoopKind kind,
                                     std::int64_t rounds, HaltBy halt_by);
std::unique_ptr<Node> make_adaptive_loop_node(std::vector<Callee> callees, std::int64_t most,
                                              const Pondering& pondering);
/// `slices`: into how many parts of the last dimension; 0: row by row.
std::unique_ptr<Node> make_map_node(std::vector<Callee> callees, std::int64_t slices, bool batched);
std::unique_ptr<Node> make_switch_node(std::vector<Callee> callees, SwitchBy switch_by);
/// What its experts are given of such a stream, by a router that gives such weights: all that there
/// is a weight for becomes one dimension. The stream itself where the weights do not fit it.
TensorSpec tokens_of(const TensorSpec& stream, const TensorSpec& weights);
std::unique_ptr<Node> make_sparse_mixture_node(std::vector<Callee> callees, Mixture mixture);

}  // namespace treadle::graph

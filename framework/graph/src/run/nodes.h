#pragma once

#include <memory>
#include <vector>

#include "run/node.h"
#include "wire/flow_step.h"

namespace treadle::graph {

// Callees as in FlowStep::parts. The options of the step have been checked.
std::unique_ptr<Node> make_loop_node(std::vector<Callee> callees, const FlowStep& step);
std::unique_ptr<Node> make_adaptive_loop_node(std::vector<Callee> callees, std::int64_t most,
                                              const Pondering& pondering);
std::unique_ptr<Node> make_map_node(std::vector<Callee> callees, const FlowStep& step);
std::unique_ptr<Node> make_switch_node(std::vector<Callee> callees, const FlowStep& step);
/// What its experts are given of such a stream, by a router that gives such weights: all that there
/// is a weight for becomes one dimension. The stream itself where the weights do not fit it.
TensorSpec tokens_of(const TensorSpec& stream, const TensorSpec& weights);
std::unique_ptr<Node> make_sparse_mixture_node(std::vector<Callee> callees, Mixture mixture);

}  // namespace treadle::graph

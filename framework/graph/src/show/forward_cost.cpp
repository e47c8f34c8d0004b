#include <treadle/core/model/abilities/counts_forward.h>

#include <algorithm>
#include <string>

#include <treadle/core/components/module_state.h>
#include <treadle/graph/cost.h>
#include <treadle/graph/graph.h>
#include <treadle/graph/ready_parts.h>

#include "run/graph_data.h"
#include "run/graphs_within.h"

namespace treadle::graph {
namespace {

/// Without identities: searches have them where a step is left out.
double calls_in(const Graph& graph) {
  static const std::string kIdentity = identity().type();
  double sum = 0;
  for (std::size_t i = 0; i < graph.impl().places.size(); ++i) {
    const Place& place = graph.impl().places[i];
    if (place.node == nullptr || graph.impl().nodes[i].type == kIdentity)
      continue;
    for (std::size_t c = 0; c < place.node->callees().size(); ++c) {
      const Graph* const within = place.node->callees()[c].graph().get();
      sum += place.node->calls_of(c) * (within == nullptr ? 1 : calls_in(*within));
    }
  }
  return sum;
}

}  // namespace

std::optional<ForwardCost> Graph::forward_cost() {
  const bool knows_inputs = std::all_of(impl_->inputs.begin(), impl_->inputs.end(),
                                        [&](auto i) { return impl_->nodes[i].result.has_value(); });
  if (!knows_inputs)
    return std::nullopt;
  ForwardCost cost;
  for (const NodeCost& node : costs(*this)) {
    cost.operations += static_cast<double>(node.operations);
    cost.bytes += static_cast<double>(node.bytes);
  }
  for (const at::Tensor& parameter : distinct_parameters(*this))
    cost.bytes += static_cast<double>(parameter.nbytes());
  cost.calls = calls_in(*this);
  return cost;
}

}  // namespace treadle::graph

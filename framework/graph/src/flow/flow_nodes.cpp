#include <treadle/graph/flow_nodes.h>

#include <boost/range/iterator_range.hpp>

#include "flow/wiring/wire.h"

namespace treadle::graph {

std::vector<std::vector<std::string>> node_ids(const FlowBuilder& flow) {
  std::vector<std::vector<std::string>> ids(flow.steps().size());
  const Wired wired = wire(flow);
  for (const Vertex vertex : boost::make_iterator_range(boost::vertices(wired.description))) {
    const WantedNode& node = wired.description[vertex];
    const bool is_value = node.kind == NodeKind::kInput || node.kind == NodeKind::kState ||
                          node.kind == NodeKind::kOutput;
    if (node.step != nullptr && !is_value)
      ids[static_cast<std::size_t>(node.step - flow.steps().data())].push_back(node.id);
  }
  return ids;
}

}  // namespace treadle::graph

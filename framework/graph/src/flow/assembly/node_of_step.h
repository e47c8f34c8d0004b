#pragma once

#include <memory>
#include <string>
#include <vector>

#include "flow/description.h"
#include "run/node.h"

namespace treadle::graph {

/// The node that calls the callees as the step of a wanted node demands. `further`: the names of
/// its outputs that are used beside the first.
std::shared_ptr<const Node> make_node(const WantedNode& node, std::vector<Callee> callees,
                                      std::vector<std::string> further);

/// Its control flow in listings: "3 rounds", "by row". Empty where it has none.
std::string control_text(const WantedNode& node);

}  // namespace treadle::graph

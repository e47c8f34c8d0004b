#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include <treadle/graph/flow_builder.h>

namespace treadle::graph {

/// A message where flows and graphs within `flow` stand in each other too deep for the stack, on
/// which building and forwards go as deep. `levels`: how many there are down to it, itself
/// included. Never recurses deeper than the limit.
std::optional<std::string> why_too_deep(const FlowBuilder& flow, std::size_t levels);

}  // namespace treadle::graph

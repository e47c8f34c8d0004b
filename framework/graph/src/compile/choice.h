#pragma once

#include <optional>
#include <string>

namespace treadle::graph {

class Graph;

/// Why Execution::kAuto leaves this graph dynamic, to stand behind "because"; nothing where it is
/// compiled. See choice.cpp for the rule.
std::optional<std::string> why_dynamic(const Graph& graph);

}  // namespace treadle::graph

#include "flow/assembly/depth.h"

#include <algorithm>
#include <map>

#include "flow/flow_step.h"
#include "run/graph_data.h"

namespace treadle::graph {
namespace {

constexpr std::size_t kMostLevels = 100;

/// Of the flow itself and all within it; above kMostLevels, any number above it. `known` makes the
/// walk linear: a flow may be part of another many times.
std::size_t levels_of(const FlowBuilder& flow, std::size_t above,
                      std::map<const FlowBuilder*, std::size_t>& known) {
  if (above > kMostLevels)
    return 1;
  if (const auto found = known.find(&flow); found != known.end())
    return found->second;
  std::size_t levels = 1;
  for (const FlowStep& step : flow.steps()) {
    for (const Part& part : step.parts) {
      if (part.flow())
        levels = std::max(levels, 1 + levels_of(*part.flow(), above + 1, known));
      if (part.graph())
        levels = std::max(levels, 1 + part.graph()->impl().levels);
    }
  }
  known.emplace(&flow, levels);
  return levels;
}

}  // namespace

std::optional<std::string> why_too_deep(const FlowBuilder& flow, std::size_t levels) {
  std::map<const FlowBuilder*, std::size_t> known;
  if (levels - 1 + levels_of(flow, levels, known) <= kMostLevels)
    return std::nullopt;
  return "flows stand in each other more than " + std::to_string(kMostLevels) + " levels deep";
}

}  // namespace treadle::graph

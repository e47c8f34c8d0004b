#include "flow/assembly/node_of_step.h"

#include <utility>

namespace treadle::graph {
namespace {

std::unique_ptr<Node> make_loop(std::vector<Callee> callees, const FlowStep& step) {
  if (step.loop == LoopKind::kAdaptive)
    return make_adaptive_loop_node(std::move(callees), step.rounds, step.pondering);
  return make_loop_node(std::move(callees), step.loop, step.rounds, step.halt_by);
}

std::string text_of_loop(const FlowStep& step) {
  const std::string rounds =
      std::to_string(step.rounds) + (step.rounds == 1 ? " round" : " rounds");
  switch (step.loop) {
    case LoopKind::kTimes:
      return rounds;
    case LoopKind::kAdaptive:
      return "each row halts by itself, at most " + rounds;
    case LoopKind::kWhile:
      return "while condition <= 0, at most " + rounds;
    default:
      return "until condition > 0, at most " + rounds;
  }
}

std::string text_of_map(const FlowStep& step) {
  const std::string pieces =
      step.map == MapKind::kSlices ? std::to_string(step.slices) + " slices" : "each row";
  return pieces + (step.batched ? ", batched" : "");
}

}  // namespace

std::shared_ptr<const Node> make_node(const WantedNode& node, std::vector<Callee> callees,
                                      std::vector<std::string> further) {
  switch (node.kind) {
    case NodeKind::kLoop:
      return make_loop(std::move(callees), *node.step);
    case NodeKind::kMap:
      return make_map_node(std::move(callees),
                           node.step->map == MapKind::kSlices ? node.step->slices : 0,
                           node.step->batched);
    case NodeKind::kSwitch:
      return make_switch_node(std::move(callees), node.step->switch_by);
    case NodeKind::kMixture:
      return make_sparse_mixture_node(std::move(callees), node.step->mixture);
    default:
      return make_call_node(std::move(callees.front()), std::move(further));
  }
}

std::string control_text(const WantedNode& node) {
  switch (node.kind) {
    case NodeKind::kLoop:
      return text_of_loop(*node.step);
    case NodeKind::kMap:
      return text_of_map(*node.step);
    case NodeKind::kSwitch:
      return node.step->switch_by == SwitchBy::kRow ? "by row" : "by batch";
    case NodeKind::kMixture:
      return "sparse";
    default:
      return "";
  }
}

}  // namespace treadle::graph

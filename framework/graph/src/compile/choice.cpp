#include "compile/choice.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/plan/lowerable.h>

#include "compile/training_work.h"
#include "run/graph_data.h"

// The rule of Execution::kAuto: compiled, unless
//
// - a node decides by values (switch, while, until, adaptive): a plan calls it, and
//   refuses values whose sizes change with those numbers;
// - more than the number of rows varies (sequences of any length): every length would need a plan,
//   and eight are kept;
// - something is carried from batch to batch: with gradients accumulated, a compiled sum may differ
//   in its last bit (docs/decisions/0012-compiled-graphs.md);
// - a layer adds to the loss: training runs node by node then, whatever was asked for;
// - branches are to run at once whatever they cost;
// - no layer can be lowered: there is nothing to gain;
// - layers that a plan calls do more than nine tenths of the work, as Graph::training_work()
//   estimates it: the rest saves less than the calls cost. Measured 1.02 to 1.09, in whole runs:
//   one LSTM, two, a small GRU, attention alone, an mlp that recomputes its layers.
//
// Everything else was measured to be no slower, but for a spread of 2 % (whole steps with Adam, one
// thread, compiled beside dynamic, `parts --benchmark_filter=step/` of tests/benchmarks): small
// dense networks 0.60, with batch norms and residuals 0.61, four small branches 0.42, mixtures of
// experts 0.63, a loop 0.62, one layer 0.81; 0.89 to 0.93 where every second layer is called; 0.96
// where kernels take all of the time (convolutions, a transformer, whose attention is called and
// does a third of the work); 1.02, in whole runs, where a small GRU does half of the work or more.

namespace treadle::graph {
namespace {

bool is_lowered(const Callee& layer) {
  return layer.ability<Lowerable>() != nullptr && !layer.reports();
}

/// Whether a plan knows any of its layers, those of graphs within included.
bool has_lowered_layer(const Graph::Impl& graph) {
  for (const Place& place : graph.places) {
    if (place.node == nullptr)
      continue;
    for (const Callee& callee : place.node->callees()) {
      if (callee.graph() != nullptr ? has_lowered_layer(callee.graph()->impl())
                                    : is_lowered(callee))
        return true;
    }
  }
  return false;
}

/// The way to a node that decides by values: "body.switch_0".
std::optional<std::string> dynamic_node(const Graph::Impl& graph) {
  for (std::size_t i = 0; i < graph.places.size(); ++i) {
    const Node* node = graph.places[i].node.get();
    if (node == nullptr)
      continue;
    if (node->depends_on_numbers())
      return graph.nodes[i].id;
    for (const Callee& callee : node->callees()) {
      if (callee.graph() == nullptr)
        continue;
      if (const auto within = dynamic_node(callee.graph()->impl()))
        return graph.nodes[i].id + "." + *within;
    }
  }
  return std::nullopt;
}

/// A node of whose value more than the number of rows varies.
std::optional<std::string> varying_node(const Graph::Impl& graph) {
  for (const NodeInfo& node : graph.nodes) {
    if (!node.result)
      return node.id;
    const std::vector<std::int64_t>& sizes = node.result->sizes;
    if (!sizes.empty() &&
        std::find(sizes.begin() + 1, sizes.end(), TensorSpec::kVaries) != sizes.end())
      return node.id;
  }
  return std::nullopt;
}

/// Whether the layers that a plan calls do nearly all of the work.
bool works_in_calls(const Graph& graph) {
  constexpr double kNearlyAll = 0.9;
  const auto all = operations_in(graph, [](const Callee&) { return true; });
  const auto called = operations_in(
      graph, [](const Callee& callee) { return callee.graph() == nullptr && !is_lowered(callee); });
  return all && called && *called > kNearlyAll * *all;
}

bool runs_branches_in_parallel(const Graph::Impl& graph) {
  return graph.has_branches && graph.branches == Branches::kParallel;
}

}  // namespace

std::optional<std::string> why_dynamic(const Graph& graph) {
  const Graph::Impl& impl = graph.impl();
  if (const auto node = dynamic_node(impl))
    return quote_text(*node) + " decides by values";
  if (const auto node = varying_node(impl))
    return "the sizes of " + quote_text(*node) + " vary from batch to batch";
  if (impl.keeps_state)
    return "it carries a state from batch to batch";
  if (impl.adds_losses)
    return "a layer adds to the loss";
  if (runs_branches_in_parallel(impl))
    return "its branches run in parallel";
  if (!has_lowered_layer(impl))
    return "none of its layers can be compiled";
  if (works_in_calls(graph))
    return "layers that cannot be compiled do nearly all of its work";
  return std::nullopt;
}

namespace {

struct NamedExecution {
  std::string_view name;
  Execution execution;
};
struct NamedBranches {
  std::string_view name;
  Branches branches;
};
constexpr std::array kBranches{NamedBranches{"sequential", Branches::kSequential},
                               NamedBranches{"parallel", Branches::kParallel}};

constexpr std::array kExecutions{NamedExecution{"auto", Execution::kAuto},
                                 NamedExecution{"compiled", Execution::kCompiled},
                                 NamedExecution{"dynamic", Execution::kDynamic}};

}  // namespace

Execution execution_named(std::string_view name) {
  for (const NamedExecution& one : kExecutions) {
    if (one.name == name)
      return one.execution;
  }
  throw ContractViolation("no execution is called \"" + std::string(name) + "\"");
}

Branches branches_named(std::string_view name) {
  for (const NamedBranches& one : kBranches) {
    if (one.name == name)
      return one.branches;
  }
  throw ContractViolation("no way to run branches is called \"" + std::string(name) + "\"");
}

}  // namespace treadle::graph

#include "run/reports.h"

#include <algorithm>
#include <utility>

// Logs and losses of layers. Layers report into the state of their callee, and the outermost graph
// collects after the forward, in the order of nodes and calls. So neither the thread of a branch
// nor the kind of execution changes the order, in which losses are added up.

namespace treadle::graph {
namespace {

using Names = std::vector<std::string>;

/// As its parameters: the node's id, and which callee it is of several.
std::string prefix_of(const Graph::Impl& graph, std::size_t place, const Callee& callee) {
  const std::string& id = graph.nodes[place].id;
  return callee.name().empty() ? id + "." : id + "." + callee.name() + ".";
}

/// `visit(callee, prefix, place, index)` for all that report here.
template <typename Visit>
void visit_reporting(const Graph::Impl& graph, const Visit& visit) {
  for (std::size_t place = 0; place < graph.places.size(); ++place) {
    if (graph.places[place].node == nullptr)
      continue;
    const std::vector<Callee>& callees = graph.places[place].node->callees();
    for (std::size_t i = 0; i < callees.size(); ++i) {
      if (callees[i].reports())
        visit(callees[i], prefix_of(graph, place, callees[i]), place, i);
    }
  }
}

Names declared_names(const Graph::Impl& graph, Names (*of_layer)(const Callee&)) {
  Names all;
  visit_reporting(graph, [&](const Callee& callee, const std::string& prefix, std::size_t,
                             std::size_t) {
    const Names names = callee.graph() != nullptr ? declared_names(callee.graph()->impl(), of_layer)
                                                  : of_layer(callee);
    for (const std::string& name : names)
      all.push_back(prefix + name);
  });
  return all;
}

}  // namespace

void begin_reports(const Graph::Impl& graph, GraphState::Data& state, bool logs, bool losses) {
  state.takes_losses = losses;
  visit_reporting(
      graph, [&](const Callee& callee, const std::string&, std::size_t place, std::size_t index) {
        Callee::State& own = state.nodes[place].callees[index];
        own.reports.takes_logs = logs;
        own.reports.takes_losses = losses;
        own.reports.list.clear();
        if (callee.graph() != nullptr)
          begin_reports(callee.graph()->impl(), own.graph->data(), logs, losses);
      });
}

void hand_over_reports(const Graph::Impl& graph, GraphState::Data& state,
                       const std::function<void(LayerReports::Report&& report)>& take) {
  visit_reporting(graph, [&](const Callee& callee, const std::string& prefix, std::size_t place,
                             std::size_t index) {
    const auto take_prefixed = [&](LayerReports::Report&& report) {
      report.name = prefix + report.name;
      take(std::move(report));
    };
    Callee::State& own = state.nodes[place].callees[index];
    if (callee.graph() != nullptr)
      hand_over_reports(callee.graph()->impl(), own.graph->data(), take_prefixed);
    for (LayerReports::Report& report : std::exchange(own.reports.list, {}))
      take_prefixed(std::move(report));
  });
}

std::vector<std::string> logged_names(const Graph::Impl& graph) {
  return declared_names(graph, [](const Callee& callee) {
    const auto* shows = callee.ability<LogsValues>();
    return shows == nullptr ? Names() : shows->logged_names();
  });
}

std::vector<std::string> loss_names(const Graph::Impl& graph) {
  return declared_names(graph, [](const Callee& callee) {
    const auto* adds = callee.ability<AddsLosses>();
    return adds == nullptr ? Names() : adds->loss_names();
  });
}

}  // namespace treadle::graph

#include <algorithm>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/core/model/abilities/adds_losses.h>
#include <treadle/core/model/abilities/names_outputs.h>

#include "run/graph_data.h"
#include "run/graph_result.h"
#include "run/node.h"
#include "run/run_graph.h"

// A callee hides whether a node calls a layer or a nested graph, and where abilities come from: an
// adapted module of libtorch is wrapped in a layer, and either of the two may have an ability.
//
// A call writes to the caller's State and never to the callee, so that several streams may use one
// graph at once.

namespace treadle::graph {

Callee::Callee(std::string name, std::string type, std::shared_ptr<Layer> layer,
               std::shared_ptr<torch::nn::Module> module)
    : name_(std::move(name)),
      type_(std::move(type)),
      layer_(std::move(layer)),
      module_(module ? std::move(module) : layer_) {}

Callee::Callee(std::string name, std::string type, std::shared_ptr<Graph> graph)
    : name_(std::move(name)), type_(std::move(type)), graph_(std::move(graph)), module_(graph_) {}

at::Tensor Callee::call(const Inputs& inputs, State& state, const ForwardScope& scope,
                        std::span<const std::string> further) const {
  if (layer_ != nullptr) {
    // Before each call, not each forward: in a loop the memory passes from round to round. A
    // graph's states are detached in begin_states().
    if (scope.truncates_bptt)
      detach_memory(state.memory);
    LayerContext context(scope.stop, state.memory, state.reports);
    context.set_truncated_bptt(scope.truncates_bptt);
    context.set_calls_layers(scope.calls_layers);
    if (!further.empty())
      context.request_outputs(further);
    // Reports of earlier calls in this forward have been checked; a loop calls its layer many
    // times.
    const std::size_t before = state.reports.list.size();
    at::Tensor value = layer_->forward(inputs, context);
    if (!value.defined())
      throw DataError("it returned no tensor");
    if (!further.empty())
      state.outputs = context.take_outputs();
    if (state.reports.list.size() > before)
      expect_declared(std::span(state.reports.list).subspan(before));
    return value;
  }
  const Graph::Impl& graph = graph_->impl();
  if (inputs.size() != graph.inputs.size())
    throw DataError(input_count_text(graph, inputs.size()));
  std::vector<at::Tensor> outputs;
  // Straight to run_graph(), past the executor of the nested graph: only the outermost graph
  // chooses how a forward runs. Inputs are contiguous already, being values of the graph around.
  if (scope.hook != nullptr && !name_.empty()) {
    ForwardScope its = scope;
    its.within += name_ + ".";
    run_graph(graph, inputs, state.graph->data(), its, outputs);
  } else {
    run_graph(graph, inputs, state.graph->data(), scope, outputs);
  }
  state.outputs.clear();
  for (const std::string& name : further) {
    const auto found =
        std::find(graph.outputs.begin() + 1, graph.outputs.end(), output_place(name));
    state.outputs.push_back(outputs[static_cast<std::size_t>(found - graph.outputs.begin())]);
  }
  return std::move(outputs.front());
}

TensorSpec Callee::result(std::span<const TensorSpec> inputs) const {
  if (layer_ != nullptr)
    return layer_->result(inputs);
  return result_of(*graph_, inputs);
}

std::vector<TensorSpec> Callee::results(std::span<const TensorSpec> inputs,
                                        std::span<const std::string> further) const {
  if (layer_ != nullptr)
    return layer_->results(inputs, further);
  const std::vector<TensorSpec> of_places = results_of(*graph_, inputs);
  std::vector<TensorSpec> results{of_places[graph_->impl().outputs.front()]};
  for (const std::string& name : further)
    results.push_back(of_places[output_place(name)]);
  return results;
}

std::vector<std::string> Callee::output_names() const {
  if (graph_ == nullptr) {
    const auto* names = ability<NamesOutputs>();
    return names == nullptr ? std::vector<std::string>() : names->output_names();
  }
  const Graph::Impl& graph = graph_->impl();
  std::vector<std::string> names;
  // The first output is the stream's and has no name here. A place with several tags has several
  // names.
  for (std::size_t i = 1; i < graph.outputs.size(); ++i) {
    const std::vector<std::string>& tags = graph.nodes[graph.outputs[i]].tags;
    names.insert(names.end(), tags.begin(), tags.end());
  }
  return names;
}

std::size_t Callee::output_place(std::string_view name) const {
  // Names were checked when the graph was built: Assembly::further_outputs().
  return graph_->impl().tags.find(name)->second;
}

bool Callee::keeps_state() const {
  if (graph_ != nullptr)
    return graph_->impl().keeps_state;
  const auto* says = ability<KeepsState>();
  return says != nullptr && says->keeps_state();
}

bool Callee::reports() const {
  // A graph has collected this from its own callees, as well as keeps_state and adds_losses.
  if (graph_ != nullptr)
    return graph_->impl().reports;
  const auto* shows = ability<LogsValues>();
  return adds_losses() || (shows != nullptr && !shows->logged_names().empty());
}

bool Callee::adds_losses() const {
  if (graph_ != nullptr)
    return graph_->impl().adds_losses;
  const auto* adds = ability<AddsLosses>();
  return adds != nullptr && !adds->loss_names().empty();
}

/// A name that was not declared could not be watched, and a loss would have no gradient in a plan.
void Callee::expect_declared(std::span<const LayerReports::Report> reports) const {
  const auto has = [](const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  const auto* shows = ability<LogsValues>();
  const auto* adds = ability<AddsLosses>();
  for (const LayerReports::Report& report : reports) {
    if (report.is_loss && (adds == nullptr || !has(adds->loss_names(), report.name))) {
      throw DataError("it adds the loss " + quote_text(report.name) +
                      " without declaring it; derive from treadle::AddsLosses and name it there");
    }
    if (!report.is_loss && (shows == nullptr || !has(shows->logged_names(), report.name))) {
      throw DataError("it logs " + quote_text(report.name) +
                      " without declaring it; derive from treadle::LogsValues and name it there");
    }
  }
}

std::vector<std::string> Callee::reference_names() const {
  if (graph_ != nullptr)
    return graph_->input_names();
  if (const auto* names = ability<NamesReferences>())
    return names->reference_names();
  return {};
}

}  // namespace treadle::graph

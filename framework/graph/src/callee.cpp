#include <utility>

#include <treadle/base/error.h>

#include "graph_data.h"
#include "graph_result.h"
#include "node.h"
#include "run_graph.h"

namespace treadle::graph {

Callee::Callee(std::string name, std::string type, std::shared_ptr<Layer> layer,
               std::shared_ptr<torch::nn::Module> module)
    : name_(std::move(name)),
      type_(std::move(type)),
      layer_(std::move(layer)),
      module_(module ? std::move(module) : layer_) {}

Callee::Callee(std::string name, std::string type, std::shared_ptr<Graph> graph)
    : name_(std::move(name)), type_(std::move(type)), graph_(std::move(graph)), module_(graph_) {}

at::Tensor Callee::call(const Inputs& inputs, State& state, const std::stop_token& stop) const {
  if (layer_ != nullptr) {
    LayerContext context{stop, state.memory};
    at::Tensor value = layer_->forward(inputs, context);
    if (!value.defined())
      throw DataError("it returned no tensor");
    return value;
  }
  const Graph::Impl& graph = graph_->impl();
  if (inputs.size() != graph.inputs.size())
    throw DataError(input_count_text(graph, inputs.size()));
  std::vector<at::Tensor> outputs;
  run_graph(graph, inputs, state.graph->data(), stop, outputs);
  return std::move(outputs.front());
}

TensorSpec Callee::result(std::span<const TensorSpec> inputs) const {
  if (layer_ != nullptr)
    return layer_->result(inputs);
  return result_of(*graph_, inputs);
}

bool Callee::remembers() const {
  if (graph_ != nullptr)
    return graph_->impl().remembers;
  const auto* says = ability<Remembers>();
  return says != nullptr && says->remembers();
}

std::vector<std::string> Callee::reference_names() const {
  if (graph_ != nullptr)
    return graph_->input_names();
  if (const auto* names = ability<NamesReferences>())
    return names->reference_names();
  return {};
}

}  // namespace treadle::graph

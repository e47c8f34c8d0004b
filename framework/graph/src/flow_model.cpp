#include <treadle/graph/flow_model.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/near_miss.h>

#include "graph_data.h"
#include "lowering.h"

namespace treadle::graph {
namespace {

std::vector<std::string> port_names(const ModelSpec& spec) {
  std::vector<std::string> names;
  for (const PortSpec& port : spec.inputs)
    names.push_back(port.name);
  return names;
}

/// For each input of the flow, which port of the data it is.
std::vector<std::size_t> match_ports(const std::vector<std::string>& input_names,
                                     const ModelSpec& spec) {
  const std::vector<std::string> ports = port_names(spec);
  std::vector<std::size_t> order{0};
  std::vector<bool> named(ports.size(), false);
  for (const std::string& name : input_names) {
    const auto found = std::find(ports.begin(), ports.end(), name);
    if (found == ports.end()) {
      throw DataError("the model has an input " + quote_text(name) + ", but the data has only " +
                      quoted_list(ports) + did_you_mean(name, ports));
    }
    const auto port = static_cast<std::size_t>(found - ports.begin());
    named[port] = true;
    order.push_back(port);
  }
  std::vector<std::string> left;
  for (std::size_t port = 0; port < ports.size(); ++port) {
    if (named[port])
      continue;
    order[0] = port;
    left.push_back(ports[port]);
  }
  if (left.size() != 1) {
    throw DataError(
        left.empty()
            ? "the model's input steps name every port of the data, so none is left for the stream"
            : "the data has the ports " + quoted_list(left) +
                  "; name all but one of them in an input step of the flow");
  }
  return order;
}

LayerSpec layer_spec(const ModelSpec& spec, const std::vector<std::size_t>& order) {
  LayerSpec layer;
  layer.outputs = spec.outputs;
  layer.dtype = spec.dtype;
  for (const std::size_t port : order) {
    std::vector<std::int64_t> sizes{TensorSpec::kVaries};
    sizes.insert(sizes.end(), spec.inputs[port].shape.begin(), spec.inputs[port].shape.end());
    layer.inputs.emplace_back(std::move(sizes), spec.dtype);
  }
  return layer;
}

/// Numbers of categories mean nothing to a layer that computes with them.
void refuse_categories(const Graph& graph, const ModelSpec& spec,
                       const std::vector<std::size_t>& order) {
  const Graph::Impl& impl = graph.impl();
  for (std::size_t input = 0; input < order.size(); ++input) {
    const PortSpec& port = spec.inputs[order[input]];
    const auto category =
        std::find_if(port.columns.begin(), port.columns.end(),
                     [](const Column& column) { return !column.categories.empty(); });
    if (category == port.columns.end())
      continue;
    for (std::size_t place = 0; place < impl.places.size(); ++place) {
      const std::vector<std::size_t>& sources = impl.places[place].inputs;
      if (std::find(sources.begin(), sources.end(), impl.inputs[input]) == sources.end())
        continue;
      if (impl.places[place].node->main().ability<TakesCategories>() != nullptr)
        continue;
      throw DataError("column " + quote_text(category->name) + " is a category, which " +
                      quote_text(impl.nodes[place].id) +
                      " would take for a number; add {\"use\": \"one_hot\"} to transforms, or "
                      "begin with an embedding");
    }
  }
}

void expect_outputs(const Graph& graph, const ModelSpec& spec) {
  const auto results = graph.results();
  const auto describe = [&](std::size_t i) {
    return results[i]->text() + " from " + quote_text(graph.nodes()[graph.output_nodes()[i]].id);
  };
  if (results.size() == 1) {
    const std::int64_t width = std::accumulate(
        spec.outputs.begin(), spec.outputs.end(), std::int64_t{0},
        [](std::int64_t sum, const OutputSpec& output) { return sum + output.width; });
    if (results[0]->sizes != std::vector<std::int64_t>{TensorSpec::kVaries, width}) {
      const bool is_rows = results[0]->sizes.size() == 2;
      throw DataError("the flow ends with " + describe(0) + ", but the loss asks for [B, " +
                      std::to_string(width) + "]; " +
                      (is_rows ? "end it with {\"use\": \"head\"}"
                               : "make rows of it in front of the head: {\"use\": \"flatten\"}, "
                                 "{\"use\": \"reduce\"} or {\"use\": \"select\"}"));
    }
    return;
  }
  if (results.size() != spec.outputs.size()) {
    throw DataError("the flow has " + std::to_string(results.size()) +
                    " outputs, but the loss asks for " + std::to_string(spec.outputs.size()));
  }
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i]->sizes !=
        std::vector<std::int64_t>{TensorSpec::kVaries, spec.outputs[i].width}) {
      throw DataError("the flow's output " + std::to_string(i) + " is " + describe(i) +
                      ", but the loss asks for [B, " + std::to_string(spec.outputs[i].width) +
                      "] as " + quote_text(spec.outputs[i].name));
    }
  }
}

}  // namespace

std::shared_ptr<Graph> build_model(const FlowBuilder& flow, const ModelSpec& spec) {
  const std::vector<std::size_t> order = match_ports(wire(flow).input_names, spec);
  std::shared_ptr<Graph> graph = flow.build(layer_spec(spec, order));
  refuse_categories(*graph, spec, order);
  expect_outputs(*graph, spec);
  std::vector<std::int64_t> widths;
  if (graph->output_nodes().size() == 1 && spec.outputs.size() > 1) {
    for (const OutputSpec& output : spec.outputs)
      widths.push_back(output.width);
  }
  graph->serve_as_model(order, std::move(widths));
  return graph;
}

}  // namespace treadle::graph

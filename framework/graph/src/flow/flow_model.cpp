#include <treadle/graph/flow_model.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/near_miss.h>

#include "flow/assembly/assemble.h"
#include "flow/flow_step.h"
#include "flow/wiring/wire.h"
#include "run/graph_data.h"

// A flow as the model for given data and loss: matches the flow's inputs with the data's ports by
// name (the port left over is the stream), and the flow's outputs with the loss's, whose single
// output may be split along its last dimension.

namespace treadle::graph {
namespace {

std::vector<std::string> port_names(const ModelSpec& spec) {
  std::vector<std::string> names;
  for (const PortSpec& port : spec.inputs)
    names.push_back(port.name);
  return names;
}

/// Every tag and input that a flow has.
std::set<std::string> names_in(const FlowBuilder& flow) {
  std::set<std::string> names;
  for (const FlowStep& step : flow.steps()) {
    names.insert(step.tags.begin(), step.tags.end());
    for (const auto& [output, tag] : step.output_tags)
      names.insert(tag);
    if (step.verb == Verb::kInput)
      names.insert(step.words.begin(), step.words.end());
  }
  return names;
}

/// Lengths and masks that steps name without an input step.
std::vector<std::string> auxiliary_inputs(const FlowBuilder& flow, const ModelSpec& spec) {
  const std::set<std::string> known = names_in(flow);
  std::vector<std::string> inputs;
  for (const PortSpec& port : spec.inputs) {
    if (!port.is_auxiliary() || known.count(port.name) > 0)
      continue;
    const auto names_it = [&](const FlowStep& step) {
      const auto has = [&](const std::vector<std::string>& words) {
        return std::find(words.begin(), words.end(), port.name) != words.end();
      };
      return has(step.references) || (step.verb == Verb::kAt && has(step.words)) ||
             step.over == port.name;
    };
    if (std::any_of(flow.steps().begin(), flow.steps().end(), names_it))
      inputs.push_back(port.name);
  }
  return inputs;
}

/// For each input of the flow, which port of the data it is. The stream is the port that no input
/// step names; ports that describe others are never the stream.
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
    if (named[port] || spec.inputs[port].is_auxiliary())
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

/// Numbers come in the run's dtype, whatever the data had them in.
TensorSpec tensor_spec(const PortSpec& port, c10::ScalarType dtype) {
  std::vector<std::int64_t> sizes{TensorSpec::kVaries};
  sizes.insert(sizes.end(), port.shape.begin(), port.shape.end());
  TensorSpec spec(std::move(sizes), c10::isFloatingType(port.dtype) ? dtype : port.dtype);
  if (port.role == Role::kTokens && port.vocabulary_size > 0)
    spec.vocabulary = {port.vocabulary_size};
  if (port.role == Role::kCategories) {
    for (const Column& column : port.columns)
      spec.vocabulary.push_back(static_cast<std::int64_t>(column.categories.size()));
  }
  return spec;
}

LayerSpec layer_spec(const ModelSpec& spec, const std::vector<std::size_t>& order) {
  LayerSpec layer;
  layer.outputs = spec.outputs;
  layer.dtype = spec.dtype;
  layer.is_step_by_step = spec.is_step_by_step;
  for (const std::size_t port : order)
    layer.inputs.push_back(tensor_spec(spec.inputs[port], spec.dtype));
  return layer;
}

/// [B, shape...]
TensorSpec rows_of(const std::vector<std::int64_t>& shape, c10::ScalarType dtype) {
  std::vector<std::int64_t> sizes{TensorSpec::kVaries};
  sizes.insert(sizes.end(), shape.begin(), shape.end());
  return {std::move(sizes), dtype};
}

/// "species" [B, 3] and "price" [B, 1]
std::string required_text(const ModelSpec& spec) {
  std::string text;
  for (std::size_t i = 0; i < spec.outputs.size(); ++i) {
    text += (i == 0                         ? ""
             : i + 1 == spec.outputs.size() ? " and "
                                            : ", ") +
            quote_text(spec.outputs[i].name) + " " +
            rows_of(spec.outputs[i].shape, spec.dtype).text();
  }
  return text;
}

std::string tags_text(const Graph& graph) {
  std::vector<std::string> tags = graph.tags();
  for (const std::string& input : graph.input_names())
    std::erase(tags, input);
  return tags.empty() ? "the flow has no tags" : "the flow has the tags " + quoted_list(tags);
}

bool have_same_positions(const std::vector<OutputSpec>& outputs) {
  const std::vector<std::int64_t>& first = outputs.front().shape;
  return std::all_of(outputs.begin(), outputs.end(), [&](const OutputSpec& output) {
    return output.shape.size() == first.size() &&
           std::equal(first.begin(), first.end() - 1, output.shape.begin());
  });
}

/// The shape of one end that is cut into all outputs.
std::vector<std::int64_t> joined_shape(const std::vector<OutputSpec>& outputs) {
  std::vector<std::int64_t> shape = outputs.front().shape;
  for (std::size_t i = 1; i < outputs.size(); ++i)
    shape.back() += outputs[i].width();
  return shape;
}

/// Sizes that only the data decides may turn out to be the same.
bool fits_output(const TensorSpec& given, const TensorSpec& required) {
  if (!c10::isFloatingType(given.dtype) || given.sizes.size() != required.sizes.size() ||
      given.sizes.back() != required.sizes.back())
    return false;
  for (std::size_t i = 0; i < given.sizes.size(); ++i) {
    if (given.sizes[i] != required.sizes[i] && given.sizes[i] != TensorSpec::kVaries &&
        required.sizes[i] != TensorSpec::kVaries)
      return false;
  }
  return true;
}

/// The flow with its outputs in the order of the loss, where their names match.
FlowBuilder with_outputs(const FlowBuilder& flow, const ModelSpec& spec) {
  std::vector<std::string> names;
  for (const OutputSpec& output : spec.outputs)
    names.push_back(output.name);
  FlowBuilder ordered = flow;
  if (flow.output_tags().empty()) {
    const std::set<std::string> known = names_in(flow);
    const bool are_tagged =
        names.size() > 1 && std::all_of(names.begin(), names.end(), [&](const std::string& name) {
          return known.count(name) > 0;
        });
    if (are_tagged)
      ordered.outputs(names);
    return ordered;
  }
  if (flow.output_names().empty())
    return ordered;
  std::vector<std::string> tags;
  for (const std::string& name : flow.output_names()) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      throw DataError("\"outputs\" names " + quote_text(name) + ", but the loss requires " +
                      required_text(spec) + did_you_mean(name, names));
    }
  }
  for (const std::string& name : names) {
    const auto found = std::find(flow.output_names().begin(), flow.output_names().end(), name);
    if (found == flow.output_names().end()) {
      throw DataError("\"outputs\" names no tag for " + quote_text(name) + "; the loss requires " +
                      required_text(spec));
    }
    tags.push_back(
        flow.output_tags()[static_cast<std::size_t>(found - flow.output_names().begin())]);
  }
  ordered.outputs(std::move(tags));
  return ordered;
}

std::string given_text(const Graph& graph, std::size_t output) {
  return graph.results()[output]->text() + " from " +
         quote_text(graph.nodes()[graph.output_nodes()[output]].id);
}

void expect_one_end(const Graph& graph, const ModelSpec& spec) {
  if (!have_same_positions(spec.outputs)) {
    throw DataError("the flow has one end, " + given_text(graph, 0) + ", but the loss requires " +
                    required_text(spec) +
                    ", which cannot be parts of one tensor; tag a value for each output, and name "
                    "them: \"outputs\": {" +
                    quote_text(spec.outputs[0].name) + ": \"tag\", ...}; " + tags_text(graph));
  }
  const TensorSpec required = rows_of(joined_shape(spec.outputs), spec.dtype);
  const TensorSpec given = *graph.results().front();
  if (fits_output(given, required))
    return;
  const std::string remedy =
      given.sizes.size() == required.sizes.size() ? "end it with {\"use\": \"head\"}"
      : required.sizes.size() == 2
          ? "make rows of it in front of the head: {\"use\": \"flatten\"}, "
            "{\"use\": \"reduce\"} or {\"use\": \"select\"}"
          : "end it with {\"use\": \"head\"} over a stream that still has the positions";
  throw DataError("the flow ends with " + given_text(graph, 0) + ", but the loss requires " +
                  (spec.outputs.size() == 1
                       ? required.text()
                       : required.text() + ": " + required_text(spec) + " beside each other") +
                  "; " + remedy);
}

void expect_outputs(const Graph& graph, const ModelSpec& spec) {
  const std::size_t count = graph.output_nodes().size();
  if (count == 1)
    return expect_one_end(graph, spec);
  if (count != spec.outputs.size()) {
    throw DataError("the flow has " + std::to_string(count) + " outputs, but the loss requires " +
                    std::to_string(spec.outputs.size()) + ": " + required_text(spec) + "; " +
                    tags_text(graph));
  }
  for (std::size_t i = 0; i < count; ++i) {
    const TensorSpec required = rows_of(spec.outputs[i].shape, spec.dtype);
    if (!fits_output(*graph.results()[i], required)) {
      throw DataError("the flow's output " + std::to_string(i) + " is " + given_text(graph, i) +
                      ", but the loss requires " + required.text() + " as " +
                      quote_text(spec.outputs[i].name) +
                      "; end that way with {\"use\": \"head\", "
                      "\"output\": " +
                      quote_text(spec.outputs[i].name) + "}");
    }
  }
}

}  // namespace

std::shared_ptr<Graph> build_model(const FlowBuilder& flow, const ModelSpec& spec) {
  FlowBuilder whole = with_outputs(flow, spec);
  if (const std::vector<std::string> more = auxiliary_inputs(flow, spec); !more.empty())
    whole.begin_with_inputs(more);
  const std::vector<std::size_t> order = match_ports(wire(whole).input_names, spec);
  std::shared_ptr<Graph> graph = whole.build(layer_spec(spec, order));
  expect_outputs(*graph, spec);
  std::vector<std::int64_t> widths;
  if (graph->output_nodes().size() == 1 && spec.outputs.size() > 1) {
    for (const OutputSpec& output : spec.outputs)
      widths.push_back(output.width());
  }
  graph->serve_as_model(spec.inputs.size(), order, std::move(widths));
  return graph;
}

}  // namespace treadle::graph

#include "mlp.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/graph/flow_model.h>
#include <treadle/graph/ready_parts.h>

#include "mlp_layers.h"

namespace treadle::models {
namespace {

using graph::FlowBuilder;
using graph::Part;

struct NamedNorm {
  std::string_view name;
  Part (*part)();  ///< null: none
};

constexpr std::array kNorms{NamedNorm{"none", nullptr}, NamedNorm{"batch", batch_norm},
                            NamedNorm{"layer", layer_norm}};

std::optional<Part> norm_named(std::string_view name) {
  for (const NamedNorm& norm : kNorms) {
    if (norm.name == name)
      return norm.part == nullptr ? std::nullopt : std::optional(norm.part());
  }
  // The schema has already refused other names; this catches a schema and a table that disagree.
  throw ContractViolation("mlp has no norm \"" + std::string(name) + "\"");
}

std::int64_t element_count(const std::vector<std::int64_t>& shape) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape)
    count *= size;
  return count;
}

bool has_varying_size(const std::vector<std::int64_t>& shape) {
  return std::find(shape.begin(), shape.end(), kVaries) != shape.end();
}

/// All but those that describe others.
std::vector<std::size_t> taken_ports(const ModelSpec& spec) {
  std::vector<std::size_t> ports;
  for (std::size_t i = 0; i < spec.inputs.size(); ++i) {
    if (!spec.inputs[i].is_auxiliary())
      ports.push_back(i);
  }
  return ports;
}

void refuse_columns(const std::vector<std::string>& names, std::string_view one,
                    std::string_view several, std::string_view transform) {
  if (names.empty())
    return;
  throw DataError((names.size() == 1 ? "column " : "columns ") + quoted_list(names) + " " +
                  std::string(names.size() == 1 ? one : several) + "; add {\"use\": \"" +
                  std::string(transform) + "\"} to transforms");
}

/// -1 for the rows, then `shape`.
std::vector<std::int64_t> rows_of(std::vector<std::int64_t> shape) {
  shape.insert(shape.begin(), -1);
  return shape;
}

/// One vector a row, of all that the model takes.
FlowBuilder features(const ModelSpec& spec) {
  FlowBuilder flow;
  const std::vector<std::size_t> ports = taken_ports(spec);
  if (ports.size() == 1) {
    const std::vector<std::int64_t>& shape = spec.inputs[ports[0]].shape;
    if (shape.size() != 1)
      flow.through(graph::reshape(rows_of({element_count(shape)})));
    return flow;
  }
  std::vector<std::string> others;
  for (std::size_t i = 1; i < ports.size(); ++i)
    others.push_back(spec.inputs[ports[i]].name);
  flow.input(others).through(graph::cat(1)).using_(others);
  return flow;
}

void add_hidden_layer(FlowBuilder& flow, const MlpShape& shape, std::size_t index) {
  const std::string name = std::to_string(index);
  flow.through(dense(shape.hidden[index])).named("layers." + name);
  if (shape.norm)
    flow.through(*shape.norm).named("norms." + name);
  flow.through(*shape.activation).named("activations." + name);
  if (shape.dropout > 0)
    flow.through(dropout(shape.dropout)).named("dropouts." + name);
}

void add_hidden_layers(FlowBuilder& flow, const MlpShape& shape) {
  const std::size_t count = shape.hidden.size();
  if (shape.recompute_layers == 0) {
    for (std::size_t i = 0; i < count; ++i)
      add_hidden_layer(flow, shape, i);
    return;
  }
  for (std::size_t begin = 0; begin < count; begin += shape.recompute_layers) {
    FlowBuilder group;
    for (std::size_t i = begin; i < std::min(count, begin + shape.recompute_layers); ++i)
      add_hidden_layer(group, shape, i);
    flow.through(graph::recompute(group, graph::RecomputedNames::kOfFlow));
  }
}

/// The last layer has all outputs beside each other. Rows of numbers are cut apart by the model;
/// an output with positions is a stretch of the columns in another shape.
void add_outputs(FlowBuilder& flow, const ModelSpec& spec, const std::string& last_layer) {
  std::int64_t width = 0;
  for (const OutputSpec& output : spec.outputs)
    width += element_count(output.shape);
  flow.through(dense(width)).named(last_layer);
  const bool are_rows =
      std::all_of(spec.outputs.begin(), spec.outputs.end(),
                  [](const OutputSpec& output) { return output.shape.size() == 1; });
  if (are_rows)
    return;
  if (spec.outputs.size() == 1) {
    flow.through(graph::reshape(rows_of(spec.outputs[0].shape)));
    return;
  }
  const std::string all = "all_outputs";
  flow.tag(all);
  std::vector<std::string> names;
  std::vector<std::string> tags;
  std::int64_t begin = 0;
  for (const OutputSpec& output : spec.outputs) {
    const std::int64_t size = element_count(output.shape);
    names.push_back(output.name);
    tags.push_back("output_" + std::to_string(tags.size()));
    flow.at({all}).through(columns(begin, size));
    flow.through(graph::reshape(rows_of(output.shape))).tag(tags.back());
    begin += size;
  }
  flow.outputs(names, tags);
}

std::shared_ptr<Model> make_model(const MlpShape& shape, const ModelSpec& spec,
                                  graph::Execution execution) {
  FlowBuilder flow = features(spec);
  add_hidden_layers(flow, shape);
  add_outputs(flow, spec, "layers." + std::to_string(shape.hidden.size()));
  const std::shared_ptr<graph::Graph> model = graph::build_model(flow, spec);
  model->set_execution(execution);
  return model;
}

/// Throws the DataError that says why `model` cannot take the inputs or give the outputs, and what
/// to do: it takes numbers, none of them missing, and no sizes that vary.
void expect_numbers(const std::string& model, const ModelSpec& spec) {
  const std::string start = "model \"" + model + "\" ";
  const std::vector<std::size_t> taken = taken_ports(spec);
  std::int64_t elements = 0;
  std::vector<std::string> categories;
  std::vector<std::string> incomplete;
  for (const std::size_t index : taken) {
    const PortSpec& port = spec.inputs[index];
    if (port.role == Role::kTokens) {
      throw DataError("port " + quote_text(port.name) + " has tokens, which " + start +
                      "would take for numbers; use the model \"flow\", which begins with {\"use\": "
                      "\"embedding\"}");
    }
    if (has_varying_size(port.shape)) {
      throw DataError(start + "takes inputs of a fixed size, but the sizes of " +
                      quote_text(port.name) + " vary from row to row; use the model \"flow\"");
    }
    if (taken.size() > 1 && port.shape.size() != 1) {
      std::vector<std::string> names;
      for (const std::size_t i : taken)
        names.push_back(spec.inputs[i].name);
      throw DataError(start + "takes one input, or several tables, but the data has " +
                      quoted_list(names) + ", and " + quote_text(port.name) +
                      " is no table; use the model \"flow\"");
    }
    elements += element_count(port.shape);
    for (const Column& column : port.columns) {
      if (port.role == Role::kCategories || !column.categories.empty())
        categories.push_back(column.name);
      if (column.may_be_missing)
        incomplete.push_back(column.name);
    }
    if (port.role == Role::kCategories && port.columns.empty())
      categories.push_back(port.name);
  }
  refuse_columns(categories, "is a category", "are categories", "one_hot");
  if (elements == 0)
    throw DataError(start + "needs at least one input column, but the data has none");
  refuse_columns(incomplete, "has missing values", "have missing values", "impute");
  for (const OutputSpec& output : spec.outputs) {
    if (has_varying_size(output.shape)) {
      throw DataError(start +
                      "gives outputs of a fixed size, but the loss requires one value per "
                      "position of sequences whose lengths vary; use the model \"flow\"");
    }
  }
}

/// Settings of hidden layers have no effect without any.
void expect_hidden_layers(const Config& config) {
  if (!config.json()["hidden"].empty())
    return;
  const nlohmann::json defaults = {
      {"activation", "relu"}, {"dropout", 0}, {"norm", "none"}, {"recompute_layers", 0}};
  for (const auto& [key, fallback] : defaults.items()) {
    if (config.json()[key] != fallback)
      config.fail(key,
                  "has no effect without hidden layers; leave it out, or give \"hidden\" a width");
  }
}

}  // namespace

Mlp::Mlp(const Config& config)
    : shape_{.hidden = config.get<std::vector<std::int64_t>>("hidden"),
             .activation = activation(config.get<std::string>("activation")),
             .dropout = config.get<double>("dropout"),
             .norm = norm_named(config.get<std::string>("norm")),
             .recompute_layers = config.get<std::size_t>("recompute_layers")},
      execution_(graph::execution_named(config.get<std::string>("execution"))) {
  expect_hidden_layers(config);
}

std::shared_ptr<Model> Mlp::do_create(const ModelSpec& spec) const {
  expect_numbers("mlp", spec);
  return make_model(shape_, spec, execution_);
}

Linear::Linear(const Config& config)
    : execution_(graph::execution_named(config.get<std::string>("execution"))) {}

std::shared_ptr<Model> Linear::do_create(const ModelSpec& spec) const {
  expect_numbers("linear", spec);
  return make_model(MlpShape{}, spec, execution_);
}

}  // namespace treadle::models

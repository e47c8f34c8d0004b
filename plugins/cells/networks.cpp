#include "networks.h"

#include <utility>
#include <vector>

#include <treadle/base/error.h>

namespace treadle::cells {
namespace {

using nlohmann::json;

constexpr const char* kWeights = "weights";

std::string tag_of_node(std::int64_t node) {
  return "node_" + std::to_string(node);
}

/// Leaves the stream as it is.
void add_weights(json& steps, const std::string& structure,
                 const std::vector<OperationChoice>& choices) {
  json listed = json::array();
  for (const OperationChoice& choice : choices) {
    listed.push_back(
        {{"name", choice.name}, {"node", choice.node}, {"operations", choice.operations}});
  }
  steps.push_back({{"use", "identity"}, {"tag", "stream"}});
  steps.push_back({{"use", "operation_weights"},
                   {"name", "architecture"},
                   {"structure", structure},
                   {"places", std::move(listed)},
                   {"tag", kWeights}});
  steps.push_back({{"use", "at"}, {"tags", {"stream"}}});
}

json operation_flow(std::string name, json steps) {
  return {{"use", "flow"}, {"name", std::move(name)}, {"flow", std::move(steps)}};
}

json with_edges(json parameters, const Structure& structure, const StructureRecord& record) {
  parameters.erase("operations");
  parameters["edges"] = structure.derived_edges(record);
  return parameters;
}

json conv_norm(std::int64_t channels, std::int64_t kernel, std::int64_t stride) {
  return {{{"use", "conv2d"},
           {"out_channels", channels},
           {"kernel_size", kernel},
           {"stride", stride},
           {"padding", kernel / 2},
           {"bias", false}},
          {{"use", "batch_norm"}}};
}

void append(json& steps, const json& more) {
  steps.insert(steps.end(), more.begin(), more.end());
}

/// Half the height and width. He et al. 2016, with the mean of 2 x 2 pixels in the shortcut.
void add_reduction(json& steps, std::int64_t stage, std::int64_t channels) {
  json body = {{{"use", "relu"}}};
  append(body, conv_norm(channels, 3, 2));
  body.push_back({{"use", "relu"}});
  append(body, conv_norm(channels, 3, 1));
  const json shortcut = {
      {{"use", "avg_pool2d"}, {"kernel_size", 2}},
      {{"use", "conv2d"}, {"out_channels", channels}, {"kernel_size", 1}, {"bias", false}}};
  const std::string name = "reductions." + std::to_string(stage - 1);
  steps.push_back({{"use", "split"},
                   {"branches",
                    {{operation_flow(name + ".body", std::move(body))},
                     {operation_flow(name + ".shortcut", shortcut)}}}});
  steps.push_back({{"use", "merge"}, {"with", "add"}});
}

}  // namespace

Cell::Cell(const Config& config)
    : parameters_(config.json()), structure_(config), operations_(config) {}

std::string Cell::structure() const {
  return structure_.is_searched() ? structure_.name() : std::string();
}

json Cell::derived(const StructureRecord& record) const {
  return with_edges(parameters_, structure_, record);
}

json Cell::do_build(const LayerSpec& spec) const {
  const TensorSpec& input = spec.inputs.front();
  const bool has_size =
      input.sizes.size() >= 2 && c10::isFloatingType(input.dtype) &&
      input.sizes[input.sizes.size() == 4 ? 1 : input.sizes.size() - 1] != TensorSpec::kVaries;
  if (!has_size || spec.inputs.size() > 2) {
    throw DataError(
        "takes images [B, channels, height, width] or vectors [B, …, width] of numbers, and at "
        "most "
        "the weights of its operations, got " +
        input.text());
  }
  const std::vector<Structure::Edge> edges = structure_.edges(input);
  const std::vector<OperationChoice> choices = Structure::choices(edges);
  json steps = json::array();
  if (spec.inputs.size() == 2)
    steps.push_back({{"use", "input"}, {"names", {kWeights}}});
  else if (!choices.empty())
    add_weights(steps, structure_.name(), choices);
  steps.push_back({{"use", "identity"}, {"tag", tag_of_node(0)}});
  std::vector<std::string> arrived;  // at the node of the edge
  std::int64_t choice = 0;
  for (std::size_t i = 0; i < edges.size(); ++i) {
    const Structure::Edge& edge = edges[i];
    const std::string name = "edges." + edge.name();
    const std::string tag = "edge_" + edge.name();
    const json from = {{"use", "at"}, {"tags", {tag_of_node(edge.from)}}};
    if (edge.is_mixed()) {
      json branches = json::array();
      for (const std::string& operation : edge.operations) {
        branches.push_back(
            {operation_flow(name + "." + operation, operations_.steps(operation, input))});
      }
      steps.push_back(from);
      steps.push_back({{"use", "split"}, {"branches", std::move(branches)}});
      steps.push_back({{"use", "merge"},
                       {"with", {{"use", "weighted_sum"}, {"choice", choice++}}},
                       {"using", {kWeights}},
                       {"tag", tag}});
      arrived.push_back(tag);
    } else if (edge.operations.front() != kZeroOperation) {
      steps.push_back(from);
      json step = operation_flow(name, operations_.steps(edge.operations.front(), input));
      step["tag"] = tag;
      steps.push_back(std::move(step));
      arrived.push_back(tag);
    }
    if (i + 1 < edges.size() && edges[i + 1].to == edge.to)
      continue;
    if (arrived.empty()) {
      steps.push_back({{"use", "at"}, {"tags", {tag_of_node(0)}}});
      steps.push_back({{"use", "zero"}, {"tag", tag_of_node(edge.to)}});
    } else {
      steps.push_back({{"use", "at"}, {"tags", arrived}});
      json node =
          arrived.size() > 1 ? json{{"use", "merge"}, {"with", "add"}} : json{{"use", "identity"}};
      node["tag"] = tag_of_node(edge.to);
      steps.push_back(std::move(node));
    }
    arrived.clear();
  }
  return steps;
}

void* Cell::do_ask(std::string_view interface_id) {
  return interface_id == DerivesNetwork::kInterface ? static_cast<DerivesNetwork*>(this) : nullptr;
}

CellNetwork::CellNetwork(const Config& config)
    : parameters_(config.json()),
      structure_(config),
      width_(config.get<std::int64_t>("width")),
      cells_(config.get<std::int64_t>("cells")),
      stages_(config.find<std::int64_t>("stages")),
      has_head_(config.get<bool>("head")) {
  static_cast<void>(Operations(config));  // refuses what is defined twice
}

std::string CellNetwork::structure() const {
  return structure_.is_searched() ? structure_.name() : std::string();
}

json CellNetwork::derived(const StructureRecord& record) const {
  return with_edges(parameters_, structure_, record);
}

void CellNetwork::add_cells(json& steps, std::int64_t stage, bool is_mixed) const {
  json cell = {{"use", "cell"}, {"nodes", structure_.nodes()}, {"structure", structure_.name()}};
  for (const char* key : {"edges", "operations", "define"}) {
    if (parameters_.contains(key))
      cell[key] = parameters_.at(key);
  }
  for (std::int64_t i = 0; i < cells_; ++i) {
    json step = {{"use", "graph"},
                 {"name", "cells." + std::to_string(stage) + "." + std::to_string(i)},
                 {"builder", cell}};
    if (is_mixed)
      step["using"] = {kWeights};
    steps.push_back(std::move(step));
  }
}

json CellNetwork::do_build(const LayerSpec& spec) const {
  const TensorSpec& input = spec.inputs.front();
  if (spec.inputs.size() != 1 || input.sizes.size() < 2 || !c10::isFloatingType(input.dtype)) {
    throw DataError(
        "takes one input, images [B, channels, height, width] or vectors [B, …, width] of numbers, "
        "got " +
        input.text());
  }
  const bool are_images = input.sizes.size() == 4;
  const std::int64_t stages = stages_.value_or(are_images ? 3 : 1);
  if (!are_images && stages > 1) {
    throw DataError("has stages that halve images, and the input is " + input.text() +
                    "; leave \"stages\" out");
  }
  for (std::size_t i = 2; are_images && i < 4; ++i) {
    if (input.sizes[i] != TensorSpec::kVaries && input.sizes[i] >> (stages - 1) == 0) {
      throw DataError(std::to_string(stages) + " stages, each of which but the first halves it, " +
                      "leave nothing of " + input.text() + "; name fewer");
    }
  }
  // The same edges for the cells of all stages.
  const std::vector<OperationChoice> choices = Structure::choices(structure_.edges(input));
  json steps = json::array();
  if (!choices.empty())
    add_weights(steps, structure_.name(), choices);
  if (are_images) {
    steps.push_back(operation_flow("stem", conv_norm(width_, 3, 1)));
  } else {
    steps.push_back({{"use", "dense"}, {"out_features", width_}, {"name", "stem"}});
  }
  for (std::int64_t stage = 0; stage < stages; ++stage) {
    if (stage > 0)
      add_reduction(steps, stage, width_ << stage);
    add_cells(steps, stage, !choices.empty());
  }
  if (are_images) {
    append(steps, {{{"use", "batch_norm"}},
                   {{"use", "relu"}},
                   {{"use", "reduce"}, {"dims", {2, 3}}, {"reduction", "mean"}}});
  }
  if (has_head_)
    steps.push_back({{"use", "head"}});
  return steps;
}

void* CellNetwork::do_ask(std::string_view interface_id) {
  return interface_id == DerivesNetwork::kInterface ? static_cast<DerivesNetwork*>(this) : nullptr;
}

}  // namespace treadle::cells

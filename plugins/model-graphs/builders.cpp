#include "builders.h"

#include <string>
#include <utility>

#include <treadle/base/error.h>

namespace treadle::model_graphs {
namespace {

using nlohmann::json;

/// Appends the layer that this word of a schema stands for; "none" for no layer.
void add_norm(json& steps, const std::string& norm) {
  if (norm != "none")
    steps.push_back({{"use", norm + "_norm"}});
}

json named(const char* layer) {
  return {{"use", layer}};
}

}  // namespace

ResidualMlp::ResidualMlp(const Config& config)
    : blocks_(config.get<std::int64_t>("blocks")),
      width_(config.get<std::int64_t>("width")),
      hidden_(config.get<std::int64_t>("hidden")),
      dropout_(config.get<double>("dropout")),
      norm_(config.get<std::string>("norm")),
      activation_(config.get<std::string>("activation")),
      has_head_(config.get<bool>("head")) {}

json ResidualMlp::do_build(const LayerSpec& spec) const {
  const TensorSpec& input = spec.inputs.front();
  if (spec.inputs.size() != 1 || input.sizes.size() != 2)
    throw DataError("takes one input of rows of numbers [B, width], got " + input.text());
  const json drop{{"use", "dropout"}, {"p", dropout_}};
  json steps = json::array({{{"use", "dense"}, {"out_features", width_}, {"name", "stem"}}});
  for (std::int64_t block = 0; block < blocks_; ++block) {
    json body = json::array();
    add_norm(body, norm_);
    body.push_back({{"use", "dense"}, {"out_features", hidden_}});
    body.push_back({{"use", activation_}});
    if (dropout_ > 0)
      body.push_back(drop);
    body.push_back({{"use", "dense"}, {"out_features", width_}});
    if (dropout_ > 0)
      body.push_back(drop);
    steps.push_back(
        {{"use", "residual"}, {"name", "block_" + std::to_string(block)}, {"body", body}});
  }
  add_norm(steps, norm_);
  steps.push_back({{"use", activation_}});
  if (has_head_)
    steps.push_back(named("head"));
  return steps;
}

ConvNet::ConvNet(const Config& config)
    : channels_(config.get<std::vector<std::int64_t>>("channels")),
      depth_(config.get<std::int64_t>("depth")),
      kernel_(config.get<std::int64_t>("kernel_size")),
      norm_(config.get<std::string>("norm")),
      activation_(config.get<std::string>("activation")),
      has_head_(config.get<bool>("head")) {
  if (kernel_ % 2 == 0)
    config.fail("kernel_size",
                "must be odd, so that there is a middle, got " + std::to_string(kernel_));
}

json ConvNet::do_build(const LayerSpec& spec) const {
  const TensorSpec& input = spec.inputs.front();
  const std::size_t dimensions = input.sizes.size();
  if (spec.inputs.size() != 1 || (dimensions != 3 && dimensions != 4)) {
    throw DataError(
        "takes one input of sequences [B, channels, length] or images [B, channels, "
        "height, width], got " +
        input.text());
  }
  for (std::size_t i = 2; i < dimensions; ++i) {
    if (input.sizes[i] != TensorSpec::kVaries && input.sizes[i] >> channels_.size() == 0) {
      throw DataError(std::to_string(channels_.size()) +
                      " stages, each of which halves it, leave "
                      "nothing of " +
                      input.text() + "; name fewer channels");
    }
  }
  const std::string suffix = dimensions == 3 ? "1d" : "2d";
  json steps = json::array();
  for (std::size_t stage = 0; stage < channels_.size(); ++stage) {
    for (std::int64_t i = 0; i < depth_; ++i) {
      steps.push_back({{"use", "conv" + suffix},
                       {"name", "conv_" + std::to_string(stage) + "_" + std::to_string(i)},
                       {"out_channels", channels_[stage]},
                       {"kernel_size", kernel_},
                       {"padding", kernel_ / 2},
                       {"bias", norm_ == "none"}});
      add_norm(steps, norm_);
      steps.push_back({{"use", activation_}});
    }
    steps.push_back({{"use", "max_pool" + suffix}, {"kernel_size", 2}});
  }
  json places = dimensions == 3 ? json::array({2}) : json::array({2, 3});
  steps.push_back({{"use", "reduce"}, {"dims", std::move(places)}, {"reduction", "mean"}});
  if (has_head_)
    steps.push_back(named("head"));
  return steps;
}

Grid::Grid(const Config& config)
    : rows_(config.get<std::int64_t>("rows")),
      columns_(config.get<std::int64_t>("columns")),
      cell_(config.json().at("cell")) {
  if (!config.has("replace"))
    return;
  const std::array<std::int64_t, 3> sizes{rows_, columns_, static_cast<std::int64_t>(cell_.size())};
  for (const Config& one : config.children("replace")) {
    const auto address = one.json().at("at").get<std::array<std::int64_t, 3>>();
    for (std::size_t d = 0; d < sizes.size(); ++d) {
      if (address[d] >= sizes[d]) {
        one.fail("at", "is [row, column, layer] within a grid of " + json(sizes).dump() + ", got " +
                           json(address).dump());
      }
    }
    if (!replaced_.emplace(address, one.json().at("with")).second)
      one.fail("at", "is replaced twice: " + json(address).dump());
  }
}

json Grid::do_build(const LayerSpec&) const {
  json steps = json::array();
  for (std::int64_t row = 0; row < rows_; ++row) {
    for (std::int64_t column = 0; column < columns_; ++column) {
      json cell = json::array();
      for (std::size_t layer = 0; layer < cell_.size(); ++layer) {
        const auto other = replaced_.find({row, column, static_cast<std::int64_t>(layer)});
        json step = other == replaced_.end() ? cell_[layer] : other->second;
        if (step.is_string())
          step = {{"use", step}};
        step.emplace("name", std::to_string(layer));
        cell.push_back(std::move(step));
      }
      steps.push_back({{"use", "flow"},
                       {"name", "cells." + std::to_string(row) + "." + std::to_string(column)},
                       {"flow", std::move(cell)}});
    }
  }
  return steps;
}

}  // namespace treadle::model_graphs

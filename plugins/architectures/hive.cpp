#include "hive.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <treadle/base/error.h>

namespace treadle::architectures {

using nlohmann::json;

namespace {

constexpr const char* kLengths = "lengths";

json recurrent(const char* layer, std::int64_t width) {
  return {{"use", layer}, {"hidden_size", width}};
}

json dense(std::int64_t width) {
  return {{"use", "dense"}, {"out_features", width}};
}

}  // namespace

/// What a cell is made for.
struct CellSize {
  std::int64_t width;
  std::int64_t heads;
  const std::string& activation;
};

struct CellKind {
  std::string_view name;
  bool needs_sequences;  ///< and takes lengths
  json (*steps)(const CellSize&);
};

namespace {

constexpr std::string_view kAttention = "attention";

constexpr std::array kKinds{
    CellKind{kAttention, true,
             [](const CellSize& size) {
               return json::array({{{"use", "attention"}, {"num_heads", size.heads}}});
             }},
    CellKind{"lstm", true,
             [](const CellSize& size) { return json::array({recurrent("lstm", size.width)}); }},
    CellKind{"gru", true,
             [](const CellSize& size) { return json::array({recurrent("gru", size.width)}); }},
    CellKind{"rnn", true,
             [](const CellSize& size) { return json::array({recurrent("rnn", size.width)}); }},
    CellKind{"dense", false,
             [](const CellSize& size) {
               return json::array({dense(size.width), {{"use", size.activation}}});
             }},
    // 2/3 of four times the width, so that three maps have the parameters of a feed-forward network
    // of two: Touvron et al., "LLaMA" (2023), section 2.2.
    CellKind{"gated_feed_forward", false,
             [](const CellSize& size) {
               return json::array({{{"use", "gated_feed_forward"},
                                    {"hidden_features", (8 * size.width + 2) / 3}}});
             }},
    CellKind{"norm_dense", false, [](const CellSize& size) {
               return json::array({"layer_norm", dense(size.width), {{"use", size.activation}}});
             }}};

const CellKind* kind_of(const std::string& name) {
  const auto* const found = std::find_if(kKinds.begin(), kKinds.end(),
                                         [&](const CellKind& kind) { return kind.name == name; });
  TREADLE_EXPECTS(found != kKinds.end(), "the schema lists the same kinds");
  return found;
}

}  // namespace

Hive::Hive(const Config& config)
    : rows_(config.get<std::int64_t>("rows")),
      columns_(config.get<std::int64_t>("columns")),
      width_(config.get<std::int64_t>("width")),
      heads_(config.get<std::int64_t>("num_heads")),
      activation_(config.get<std::string>("activation")),
      combine_(config.get<std::string>("combine")),
      returns_sequences_(config.get<bool>("return_sequences")),
      has_head_(config.get<bool>("head")) {
  const auto count = static_cast<std::size_t>(rows_ * columns_);
  const json& kinds = config.json().at("cells");
  if (kinds.is_string()) {
    cells_.assign(count, kind_of(kinds.get<std::string>()));
  } else {
    if (kinds.size() != count) {
      config.fail("cells", "a grid of " + std::to_string(rows_) + " x " + std::to_string(columns_) +
                               " has " + std::to_string(count) + " cells, got " +
                               std::to_string(kinds.size()) +
                               "; name one kind for all, or as many as there are cells");
    }
    for (const json& kind : kinds)
      cells_.push_back(kind_of(kind.get<std::string>()));
  }
  const bool has_attention = std::any_of(
      cells_.begin(), cells_.end(), [](const CellKind* kind) { return kind->name == kAttention; });
  if (has_attention && width_ % heads_ != 0) {
    config.fail("num_heads", "must divide \"width\", " + std::to_string(width_) + ", got " +
                                 std::to_string(heads_));
  }
}

Hive::Stream Hive::stream_of(const LayerSpec& spec) const {
  const TensorSpec& input = spec.inputs.front();
  const std::size_t dimensions = input.sizes.size();
  if (!c10::isFloatingType(input.dtype) || (dimensions != 2 && dimensions != 3)) {
    throw DataError("takes rows of numbers [B, width] or sequences [B, length, width], got " +
                    input.text());
  }
  const Stream stream{.is_sequence = dimensions == 3, .has_lengths = spec.inputs.size() > 1};
  if (!stream.is_sequence && returns_sequences_)
    throw DataError("has \"return_sequences\", which rows of numbers are not: " + input.text());
  if (!stream.has_lengths)
    return stream;
  const TensorSpec& lengths = spec.inputs[1];
  if (spec.inputs.size() > 2 || !stream.is_sequence || lengths.sizes.size() != 1 ||
      lengths.dtype != c10::ScalarType::Long) {
    throw DataError("takes as reference the lengths [B] int64 of sequences, got " + input.text() +
                    " and " + lengths.text());
  }
  if (combine_ == "gate" && cells_.size() > 1) {
    throw DataError(
        "has a gate, whose cells cannot be given lengths; choose another \"combine\", such as "
        "\"mean\"");
  }
  return stream;
}

/// The steps of a cell, each cell with the same inputs.
json Hive::cell(const CellKind& kind, const Stream& stream) const {
  json steps = json::array();
  if (stream.has_lengths)
    steps.push_back({{"use", "input"}, {"names", {kLengths}}});
  for (json& step : kind.steps({.width = width_, .heads = heads_, .activation = activation_})) {
    if (stream.has_lengths && kind.needs_sequences)
      step["using"] = {kLengths};
    steps.push_back(std::move(step));
  }
  return steps;
}

json Hive::merger() const {
  if (combine_ != "grid_cat")
    return {{"use", combine_}};
  json positions = json::array();
  for (std::int64_t row = 0; row < rows_; ++row) {
    for (std::int64_t column = 0; column < columns_; ++column)
      positions.push_back({row, column, 0});
  }
  return {{"use", "grid_cat"}, {"grid", {rows_, columns_, 1}}, {"positions", std::move(positions)}};
}

void Hive::add_cells(json& steps, const Stream& stream) const {
  json cells = json::array();
  for (const CellKind* const kind : cells_)
    cells.push_back(cell(*kind, stream));
  json step;
  if (cells_.size() == 1) {  // of one cell, each combination is the cell
    step = {{"use", "flow"}, {"name", "cells_0"}, {"flow", cells.front()}};
  } else if (combine_ == "gate") {
    step = {{"use", "mixture_of_experts"},
            {"name", "cells"},
            {"router", {{"use", "softmax_router"}, {"num_experts", cells_.size()}}},
            {"experts", std::move(cells)}};
  } else {
    step = {{"use", "split"}, {"name", "cells"}, {"branches", std::move(cells)}};
  }
  if (stream.has_lengths)
    step["using"] = {kLengths};
  const bool is_open = step.at("use") == "split";
  steps.push_back(std::move(step));
  if (is_open)
    steps.push_back({{"use", "merge"}, {"with", merger()}, {"name", "combined"}});
}

void Hive::add_dense(json& steps, const char* name) const {
  json step = dense(width_);
  step["name"] = name;
  steps.push_back(std::move(step));
  steps.push_back({{"use", activation_}});
}

json Hive::do_build(const LayerSpec& spec) const {
  const Stream stream = stream_of(spec);
  const bool is_made_sequence =
      !stream.is_sequence && std::any_of(cells_.begin(), cells_.end(), [](const CellKind* kind) {
        return kind->needs_sequences;
      });
  json steps = json::array();
  if (stream.has_lengths)
    steps.push_back({{"use", "input"}, {"names", {kLengths}}});
  add_dense(steps, "stem");
  if (is_made_sequence)
    steps.push_back({{"use", "unflatten"}, {"shape", {1, width_}}});
  add_cells(steps, stream);
  if (is_made_sequence)
    steps.push_back({{"use", "flatten"}});
  if (stream.is_sequence && !returns_sequences_) {
    json mean{{"use", "reduce"}, {"dims", {1}}, {"reduction", "mean"}};
    if (stream.has_lengths)
      mean["using"] = {kLengths};
    steps.push_back(std::move(mean));
  }
  add_dense(steps, "merger");
  if (has_head_)
    steps.push_back({{"use", "head"}, {"name", "head"}});
  return steps;
}

}  // namespace treadle::architectures

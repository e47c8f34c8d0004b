#include "temporal_fusion_transformer.h"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include <treadle/base/error.h>

namespace treadle::forecasting {
namespace {

using json = nlohmann::json;

/// An input of a TFT as documents call it, beside the lookback.
struct InputKind {
  const char* name;
  const char* tag;         ///< in the flow
  std::size_t dimensions;  ///< of a batch
  bool has_categories;
  const char* sizes;
};

constexpr InputKind kFuture{"future", "future_inputs", 3, false, "[B, horizon, columns]"};
constexpr InputKind kFutureCategories{"future.categories", "future_categories", 3, true,
                                      "[B, horizon, columns] int64"};
constexpr InputKind kStatic{"static", "static_inputs", 2, false, "[B, columns]"};
constexpr InputKind kStaticCategories{"static.categories", "static_categories", 2, true,
                                      "[B, columns] int64"};
constexpr InputKind kCategories{"categories", "categories", 3, true, "[B, steps, columns] int64"};
constexpr const InputKind* kKinds[] = {&kFuture, &kFutureCategories, &kStatic, &kStaticCategories,
                                       &kCategories};

const InputKind& kind_called(const std::string& name) {
  const auto* const* const found =
      std::find_if(std::begin(kKinds), std::end(kKinds),
                   [&](const InputKind* kind) { return kind->name == name; });
  TREADLE_EXPECTS(found != std::end(kKinds), "the schema lists the inputs");
  return **found;
}

/// The embedded variables of a part of the window and their selection.
class Selections {
 public:
  Selections(json& steps, std::int64_t width, double dropout)
      : steps_(steps), width_(width), dropout_(dropout) {}

  /// Selects among the columns of these inputs, tags of the flow, as "<name>"; `context` may be
  /// empty.
  void add(const std::string& name, const std::string& numbers, const std::string& categories,
           const std::string& context) {
    json embedded = json::array();
    if (!numbers.empty()) {
      embedded.push_back(name + "_numbers");
      steps_.push_back({{"use", "at"}, {"tags", {numbers}}});
      steps_.push_back({{"use", "feature_tokenizer"},
                        {"embedding_dim", width_},
                        {"name", name + "_embedding"},
                        {"tag", embedded.back()}});
    }
    if (!categories.empty()) {
      embedded.push_back(name + "_indices");
      steps_.push_back({{"use", "at"}, {"tags", {categories}}});
      steps_.push_back({{"use", "embedding"},
                        {"embedding_dim", width_},
                        {"name", name + "_category_embedding"},
                        {"tag", embedded.back()}});
    }
    if (embedded.size() == 2) {
      steps_.push_back({{"use", "at"}, {"tags", embedded}});
      steps_.push_back({{"use", "merge"}, {"with", {{"use", "cat"}, {"dim", -2}}}});
    }
    json selection{{"use", "variable_selection"},
                   {"dropout", dropout_},
                   {"name", name + "_selection"},
                   {"tag", name}};
    if (!context.empty())
      selection["using"] = {context};
    steps_.push_back(std::move(selection));
  }

 private:
  json& steps_;
  std::int64_t width_;
  double dropout_;
};

}  // namespace

TemporalFusionTransformer::TemporalFusionTransformer(const Config& config)
    : inputs_(config.get<std::vector<std::string>>("inputs")),
      width_(config.get<std::int64_t>("hidden_size")),
      heads_(config.get<std::int64_t>("num_heads")),
      lstm_layers_(config.get<std::int64_t>("lstm_layers")),
      dropout_(config.get<double>("dropout")) {
  if (width_ % heads_ != 0) {
    config.fail("num_heads", "must divide hidden_size, " + std::to_string(width_) +
                                 ": each head has its share of it");
  }
  const bool knows_future =
      std::any_of(inputs_.begin(), inputs_.end(), [](const std::string& name) {
        return name == kFuture.name || name == kFutureCategories.name;
      });
  if (!knows_future) {
    config.fail("inputs",
                "must name \"future\" or \"future.categories\": the forecast begins with what is "
                "known of its steps; name columns in \"future\" of the sequence windows, such as "
                "those that \"calendar\" of the data series adds");
  }
}

/// Steps to forecast. Throws a DataError where windows or output have another shape.
std::int64_t TemporalFusionTransformer::horizon_of(const LayerSpec& spec) const {
  const TensorSpec& past = spec.inputs.front();
  if (past.sizes.size() != 3 || past.sizes[1] == TensorSpec::kVaries ||
      !c10::isFloatingType(past.dtype)) {
    throw DataError("takes windows of numbers [B, steps, columns] of one length, got " +
                    past.text());
  }
  if (spec.inputs.size() != inputs_.size() + 1) {
    throw DataError("has " + std::to_string(inputs_.size()) +
                    " further inputs (\"inputs\") and \"using\" names " +
                    std::to_string(spec.inputs.size() - 1) +
                    "; both name the same ones in the same order");
  }
  if (spec.outputs.size() != 1) {
    throw DataError("computes one output, and the losses require " +
                    std::to_string(spec.outputs.size()) +
                    "; predict one target of several columns");
  }
  const std::vector<std::int64_t>& output = spec.outputs[0].shape;
  const std::int64_t horizon = output.size() == 2 ? output[0] : 1;
  if (output.empty() || output.size() > 2 || horizon == kVaries) {
    throw DataError(
        "computes [horizon, numbers] for each window, and the loss requires other "
        "dimensions: " +
        std::to_string(output.size()));
  }
  return horizon;
}

/// Throws a DataError where a further input has another shape than its kind.
void TemporalFusionTransformer::expect_inputs(const LayerSpec& spec, std::int64_t horizon) const {
  const std::int64_t lookback = spec.inputs.front().sizes[1];
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const InputKind& kind = kind_called(inputs_[i]);
    const TensorSpec& input = spec.inputs[i + 1];
    const bool is_ahead = &kind == &kFuture || &kind == &kFutureCategories;
    const std::int64_t steps = is_ahead ? horizon : lookback;
    const bool fits = input.sizes.size() == kind.dimensions &&
                      c10::isFloatingType(input.dtype) != kind.has_categories &&
                      (kind.dimensions == 2 || input.sizes[1] == steps);
    if (!fits) {
      throw DataError(
          "takes " + std::string(kind.sizes) + " as \"" + kind.name + "\", of " +
          (kind.dimensions == 2 ? std::string("one row") : std::to_string(steps) + " steps") +
          ", got " + input.text());
    }
  }
}

json TemporalFusionTransformer::input_tags() const {
  json tags = json::array();
  for (const std::string& input : inputs_)
    tags.push_back(kind_called(input).tag);
  return tags;
}

json TemporalFusionTransformer::do_build(const LayerSpec& spec) const {
  const std::int64_t horizon = horizon_of(spec);
  expect_inputs(spec, horizon);
  const std::vector<std::int64_t>& output = spec.outputs[0].shape;
  const auto tag_of = [&](const InputKind& kind) -> std::string {
    const bool is_there = std::find(inputs_.begin(), inputs_.end(), kind.name) != inputs_.end();
    return is_there ? kind.tag : "";
  };
  json tags = json::array();
  for (const std::string& input : inputs_)
    tags.push_back(kind_called(input).tag);
  json steps = json::array({{{"use", "input"}, {"names", tags}}});
  steps.push_back({{"use", "identity"}, {"tag", "lookback"}});
  Selections selections(steps, width_, dropout_);
  const bool has_static = !tag_of(kStatic).empty() || !tag_of(kStaticCategories).empty();
  // Contexts, section 4.2: of the selection, of the enrichment, and two that the lstm begins with.
  const auto context = [&](const char* name) { return has_static ? std::string(name) : ""; };
  const auto network = [&](const std::string& name) {
    return json{{"use", "gated_residual_network"},
                {"hidden_size", width_},
                {"dropout", dropout_},
                {"name", name}};
  };
  const auto gate = [&](const std::string& name, const std::string& reference) {
    return json{
        {"use", "gated_add_norm"}, {"dropout", dropout_}, {"name", name}, {"using", {reference}}};
  };
  if (has_static) {
    selections.add("static", tag_of(kStatic), tag_of(kStaticCategories), "");
    for (const char* const name :
         {"selection_context", "enrichment_context", "hidden_context", "cell_context"}) {
      steps.push_back({{"use", "at"}, {"tags", {"static"}}});
      steps.push_back(network(name));
      steps.back()["tag"] = name;
    }
  }
  selections.add("past", "lookback", tag_of(kCategories), context("selection_context"));
  selections.add("ahead", tag_of(kFuture), tag_of(kFutureCategories), context("selection_context"));
  steps.push_back({{"use", "at"}, {"tags", {"past", "ahead"}}});
  steps.push_back({{"use", "merge"}, {"with", {{"use", "cat"}, {"dim", 1}}}, {"tag", "selected"}});
  json lstm{{"use", "lstm_encoder_decoder"},
            {"num_layers", lstm_layers_},
            {"dropout", dropout_},
            {"name", "lstm"},
            {"using", {"ahead"}}};
  if (has_static) {
    lstm["using"].push_back("hidden_context");
    lstm["using"].push_back("cell_context");
  }
  steps.push_back({{"use", "at"}, {"tags", {"past"}}});
  steps.push_back(std::move(lstm));
  steps.push_back(gate("lstm_gate", "selected"));
  steps.back()["tag"] = "temporal";
  json enrichment = network("static_enrichment");
  if (has_static)
    enrichment["using"] = {"enrichment_context"};
  enrichment["tag"] = "enriched";
  steps.push_back(std::move(enrichment));
  const json last{{"use", "narrow"}, {"dim", 1}, {"start", -horizon}, {"length", horizon}};
  const auto add_last = [&](const char* of, const char* tag) {
    steps.push_back({{"use", "at"}, {"tags", {of}}});
    steps.push_back(last);
    steps.back()["tag"] = tag;
  };
  add_last("temporal", "temporal_ahead");
  add_last("enriched", "enriched_ahead");
  steps.push_back({{"use", "at"}, {"tags", {"enriched"}}});
  steps.push_back({{"use", "interpretable_attention"},
                   {"num_heads", heads_},
                   {"queries", horizon},
                   {"dropout", dropout_},
                   {"name", "attention"}});
  steps.push_back(gate("attention_gate", "enriched_ahead"));
  steps.push_back(network("feed_forward"));
  steps.push_back(gate("feed_forward_gate", "temporal_ahead"));
  // The last gate has no dropout: what it is given has had its own.
  steps.back()["dropout"] = 0;
  steps.push_back({{"use", "dense"}, {"out_features", output.back()}, {"name", "head"}});
  if (output.size() == 1)
    steps.push_back({{"use", "flatten"}});
  return steps;
}

}  // namespace treadle::forecasting

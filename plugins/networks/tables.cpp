#include "tables.h"

#include <utility>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>

#include "steps.h"

namespace treadle::networks {

using nlohmann::json;

namespace {

struct Members {
  std::int64_t count;
  std::int64_t width;  // of all outputs of one, beside each other
};

/// What the loss requires: [members, width] for each row.
Members members_of(const std::vector<OutputSpec>& outputs) {
  Members members{0, 0};
  for (const OutputSpec& output : outputs) {
    const bool fits =
        output.shape.size() == 2 && (members.count == 0 || output.shape.front() == members.count);
    if (!fits) {
      std::vector<std::int64_t> sizes{TensorSpec::kVaries};
      sizes.insert(sizes.end(), output.shape.begin(), output.shape.end());
      throw DataError("has outputs [B, members, width], and the loss requires " +
                      quote_text(output.name) + " " +
                      TensorSpec(sizes, c10::ScalarType::Float).text() +
                      "; its loss is {\"use\": \"ensemble\", \"members\": 32, \"loss\": ...}");
    }
    members.count = output.shape.front();
    members.width += output.width();
  }
  if (members.count == 0)
    throw DataError("gets the number of members from the loss, but no loss is given here");
  return members;
}

}  // namespace

Mlp::Mlp(const Config& config)
    : hidden_(config.get<std::vector<std::int64_t>>("hidden")),
      activation_(config.get<std::string>("activation")),
      norm_(config.get_or<std::string>("norm", "")),
      dropout_(config.get<double>("dropout")),
      has_head_(config.get<bool>("head")) {}

json Mlp::do_build(const LayerSpec&) const {
  json steps = json::array();
  for (std::size_t i = 0; i < hidden_.size(); ++i) {
    steps.push_back(dense("layers." + std::to_string(i), hidden_[i]));
    if (!norm_.empty())
      steps.push_back(named(norm_, "norms." + std::to_string(i)));
    steps.push_back({{"use", activation_}});
    add_dropout(steps, dropout_);
  }
  if (has_head_)
    steps.push_back(named("head", "head"));
  return steps;
}

TabM::TabM(const Config& config)
    : is_mini_(config.get<std::string>("variant") == "tabm-mini"),
      layers_(config.get<std::int64_t>("num_layers")),
      width_(config.get<std::int64_t>("width")),
      dropout_(config.get<double>("dropout")),
      scaling_init_(config.get<std::string>("scaling_init")) {}

json TabM::do_build(const LayerSpec& spec) const {
  const TensorSpec& input = spec.inputs.front();
  if (spec.inputs.size() != 1 || input.sizes.size() != 2)
    throw DataError("takes one input of rows of numbers [B, width], got " + input.text());
  const Members wanted = members_of(spec.outputs);
  json steps = json::array();
  for (std::int64_t i = 0; i < layers_; ++i) {
    const std::string name = "blocks." + std::to_string(i);
    if (is_mini_ && i > 0) {
      steps.push_back(dense(name, width_));
    } else {
      json layer = named("batch_ensemble_dense", name);
      layer["members"] = wanted.count;
      layer["out_features"] = width_;
      layer["adapters"] = is_mini_ ? "input" : "all";
      layer["scaling_init"] = i == 0 ? scaling_init_ : "ones";
      steps.push_back(std::move(layer));
    }
    steps.push_back("relu");
    add_dropout(steps, dropout_);
  }
  json head = named("ensemble_dense", "output");
  head["members"] = wanted.count;
  head["out_features"] = wanted.width;
  steps.push_back(std::move(head));
  return steps;
}

FtTransformer::FtTransformer(const Config& config)
    : width_(config.get<std::int64_t>("width")),
      layers_(config.get<std::int64_t>("num_layers")),
      heads_(config.get<std::int64_t>("num_heads")),
      feed_forward_(config.get_or<std::int64_t>("dim_feedforward", width_ * 4 / 3)),
      dropout_(config.get<double>("dropout")),
      has_head_(config.get<bool>("head")) {
  expect_even_heads(config, "width");
}

json FtTransformer::do_build(const LayerSpec& spec) const {
  const TensorSpec& input = spec.inputs.front();
  const bool has_categories = spec.inputs.size() > 1 || input.dtype == c10::ScalarType::Long;
  if (spec.inputs.size() > 2 || input.sizes.size() != 2) {
    throw DataError("takes rows of numbers [B, width], of categories [B, columns], or both, got " +
                    input.text());
  }
  json encoder = named("graph", "encoder");
  encoder["builder"] = {{"use", "transformer_encoder"}, {"num_layers", layers_},
                        {"num_heads", heads_},          {"dim_feedforward", feed_forward_},
                        {"dropout", dropout_},          {"activation", "reglu"},
                        {"norm_first", true},           {"final_norm", false}};
  json tokenizer = named(has_categories ? "graph" : "feature_tokenizer", "tokenizer");
  json steps = json::array();
  if (has_categories) {
    tokenizer["builder"] = {
        {"use", "table_embedding"}, {"embedding_dim", width_}, {"tokens", true}};
  } else {
    tokenizer["embedding_dim"] = width_;
  }
  if (spec.inputs.size() == 2) {
    const json names = json::array({"other_columns"});
    steps.push_back({{"use", "input"}, {"names", names}});
    tokenizer["using"] = names;
  }
  for (json& step :
       std::vector<json>{std::move(tokenizer), named("class_token", "cls_token"),
                         std::move(encoder), json{{"use", "select"}, {"dim", 1}, {"index", 0}},
                         named("layer_norm", "norm"), json("relu")})
    steps.push_back(std::move(step));
  if (has_head_)
    steps.push_back(named("head", "head"));
  return steps;
}

}  // namespace treadle::networks

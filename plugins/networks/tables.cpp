#include "tables.h"

#include <utility>

#include <treadle/base/error.h>

#include "steps.h"

namespace treadle::networks {

using nlohmann::json;

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

FtTransformer::FtTransformer(const Config& config)
    : width_(config.get<std::int64_t>("width")),
      layers_(config.get<std::int64_t>("num_layers")),
      heads_(config.get<std::int64_t>("num_heads")),
      feed_forward_(config.get_or<std::int64_t>("dim_feedforward", width_ * 4 / 3)),
      dropout_(config.get<double>("dropout")),
      has_head_(config.get<bool>("head")) {}

json FtTransformer::do_build(const LayerSpec& spec) const {
  const TensorSpec& input = spec.inputs.front();
  if (spec.inputs.size() != 1 || input.sizes.size() != 2)
    throw DataError("takes one input of rows of numbers [B, width], got " + input.text());
  json encoder = named("graph", "encoder");
  encoder["builder"] = {{"use", "transformer_encoder"}, {"num_layers", layers_},
                        {"num_heads", heads_},          {"dim_feedforward", feed_forward_},
                        {"dropout", dropout_},          {"activation", "reglu"},
                        {"norm_first", true},           {"final_norm", false}};
  json tokenizer = named("feature_tokenizer", "tokenizer");
  tokenizer["embedding_dim"] = width_;
  json steps = json::array({std::move(tokenizer), named("class_token", "cls_token"),
                            std::move(encoder), json{{"use", "select"}, {"dim", 1}, {"index", 0}},
                            named("layer_norm", "norm"), "relu"});
  if (has_head_)
    steps.push_back(named("head", "head"));
  return steps;
}

}  // namespace treadle::networks

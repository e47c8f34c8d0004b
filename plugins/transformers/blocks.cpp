#include "blocks.h"

#include <array>
#include <set>
#include <string_view>
#include <utility>

namespace treadle::transformers {
namespace {

using nlohmann::json;

/// Feed-forward networks with a gate, by the function of the gate.
struct GatedActivation {
  std::string_view name;
  std::string_view of_gate;
};
constexpr std::array kGated{GatedActivation{"swiglu", "silu"}, GatedActivation{"geglu", "gelu"},
                            GatedActivation{"reglu", "relu"}};

json named(const std::string& layer, const std::string& name) {
  return {{"use", layer}, {"name", name}};
}

/// All of them once, in order.
Tags joined(const Tags& first, const Tags& second) {
  Tags all;
  std::set<std::string> known;
  for (const Tags& tags : {first, second}) {
    for (const std::string& tag : tags) {
      if (known.insert(tag).second)
        all.push_back(tag);
    }
  }
  return all;
}

/// A block is a flow of its own, so that its nodes are "layers.0.norm1" and so on.
void add_block(json& steps, std::int64_t index, json block, const Tags& references) {
  json step{
      {"use", "flow"}, {"name", "layers." + std::to_string(index)}, {"flow", std::move(block)}};
  if (!references.empty())
    step["using"] = references;
  steps.push_back(std::move(step));
}

template <typename T>
void put(json& step, const char* key, const std::optional<T>& value) {
  if (value)
    step[key] = *value;
}

}  // namespace

void add_inputs(json& steps, const Tags& tags) {
  if (!tags.empty())
    steps.push_back({{"use", "input"}, {"names", tags}});
}

Blocks::Blocks(const Config& config)
    : heads_(config.get<std::int64_t>("num_heads")),
      kv_heads_(config.find<std::int64_t>("num_kv_heads")),
      head_dim_(config.find<std::int64_t>("head_dim")),
      feed_forward_(config.find<std::int64_t>("dim_feedforward")),
      window_(config.find<std::int64_t>("window")),
      rotary_(config.has("rotary") ? config.json().at("rotary") : json()),
      dropout_(config.get<double>("dropout")),
      activation_(config.get<std::string>("activation")),
      norm_first_(config.get<bool>("norm_first")),
      norm_(config.get<std::string>("norm")),
      bias_(config.get<bool>("bias")),
      init_std_(config.find<double>("init_std")),
      residual_init_std_(config.find<double>("residual_init_std")) {
  if (residual_init_std_ && !init_std_)
    config.fail("residual_init_std", "has no effect without \"init_std\"");
  if (kv_heads_ && heads_ % *kv_heads_ != 0) {
    config.fail("num_kv_heads", "is " + std::to_string(*kv_heads_) +
                                    ", which does not divide the " + std::to_string(heads_) +
                                    " of \"num_heads\"");
  }
}

json Blocks::norm(const std::string& name) const {
  return named(norm_, name);
}

json Blocks::self_attention(bool is_causal, const Tags& masks) const {
  json step = cross_attention(masks);
  step["name"] = "self_attn";
  step["is_causal"] = is_causal;
  put(step, "window", window_);
  if (!rotary_.is_null())
    step["rotary"] = rotary_;
  return step;
}

void Blocks::put_init(json& step) const {
  if (!init_std_)
    return;
  step["init"] = "normal";
  step["init_std"] = *init_std_;
  put(step, "residual_init_std", residual_init_std_);
}

json Blocks::cross_attention(const Tags& references) const {
  json step = named("attention", "multihead_attn");
  step["num_heads"] = heads_;
  put(step, "num_kv_heads", kv_heads_);
  put(step, "head_dim", head_dim_);
  step["dropout"] = dropout_;
  step["bias"] = bias_;
  put_init(step);
  if (!references.empty())
    step["using"] = references;
  return step;
}

json Blocks::feed_forward(std::int64_t width) const {
  const std::int64_t hidden = feed_forward_.value_or(4 * width);
  for (const GatedActivation& gated : kGated) {
    if (gated.name != activation_)
      continue;
    json step = named("gated_feed_forward", "feed_forward");
    step["hidden_features"] = hidden;
    step["activation"] = gated.of_gate;
    step["dropout"] = dropout_;
    step["bias"] = bias_;
    put_init(step);
    return json::array({std::move(step)});
  }
  const auto dense = [&](const char* name, std::int64_t out, const std::optional<double>& std) {
    json step = named("dense", name);
    step["out_features"] = out;
    step["bias"] = bias_;
    if (std) {
      step["init"] = "normal";
      step["init_std"] = *std;
    }
    return step;
  };
  json steps = json::array({dense("linear1", hidden, init_std_), {{"use", activation_}}});
  if (dropout_ > 0)
    steps.push_back({{"use", "dropout"}, {"p", dropout_}});
  steps.push_back(dense("linear2", width, residual_init_std_ ? residual_init_std_ : init_std_));
  return steps;
}

/// The formulas of the class: what goes in and what `body` makes of it are added by their tags.
void Blocks::add_sublayer(json& steps, json body) const {
  // Two steps of each sublayer have tags: what goes in, and what comes out.
  std::size_t tags = 0;
  for (const json& step : steps)
    tags += step.contains("tag") ? 1 : 0;
  const std::string number = std::to_string(tags / 2 + 1);
  const bool stands_at_the_beginning = steps.empty() || steps.back().at("use") == "input";
  if (stands_at_the_beginning)
    steps.push_back({{"use", "identity"}});
  steps.back()["tag"] = "x" + number;
  if (norm_first_)
    steps.push_back(norm("norm" + number));
  steps.insert(steps.end(), body.begin(), body.end());
  if (dropout_ > 0)
    steps.push_back({{"use", "dropout"}, {"p", dropout_}});
  steps.back()["tag"] = "f" + number;
  steps.push_back({{"use", "at"}, {"tags", {"x" + number, "f" + number}}});
  steps.push_back({{"use", "merge"}, {"with", "add"}});
  if (!norm_first_)
    steps.push_back(norm("norm" + number));
}

json Blocks::encoder(std::int64_t layers, std::int64_t width, bool is_causal,
                     const Tags& masks) const {
  json steps = json::array();
  for (std::int64_t i = 0; i < layers; ++i) {
    json block = json::array();
    add_inputs(block, masks);
    add_sublayer(block, json::array({self_attention(is_causal, masks)}));
    add_sublayer(block, feed_forward(width));
    add_block(steps, i, std::move(block), masks);
  }
  return steps;
}

json Blocks::decoder(std::int64_t layers, std::int64_t width, bool is_causal, const Tags& masks,
                     const std::string& memory, const Tags& memory_masks) const {
  const Tags of_memory = joined({memory}, memory_masks);
  const Tags all = joined(of_memory, masks);
  json steps = json::array();
  for (std::int64_t i = 0; i < layers; ++i) {
    json block = json::array();
    add_inputs(block, all);
    add_sublayer(block, json::array({self_attention(is_causal, masks)}));
    add_sublayer(block, json::array({cross_attention(of_memory)}));
    add_sublayer(block, feed_forward(width));
    add_block(steps, i, std::move(block), all);
  }
  return steps;
}

}  // namespace treadle::transformers

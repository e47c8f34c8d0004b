#include "sequences.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include <treadle/base/error.h>

#include "steps.h"

namespace treadle::networks {
namespace {

using nlohmann::json;

/// Of all weights, in the papers of BERT and GPT.
constexpr double kInitialStd = 0.02;

void begin_normal(json& layer) {
  layer["init"] = "normal";
  layer["init_std"] = kInitialStd;
}

bool are_indices(const TensorSpec& spec, std::size_t dimensions) {
  return spec.dtype == c10::ScalarType::Long && spec.sizes.size() == dimensions;
}

}  // namespace

// --- TCN

TemporalConvolutions::TemporalConvolutions(const Config& config)
    : channels_(config.get<std::vector<std::int64_t>>("channels")),
      kernel_(config.get<std::int64_t>("kernel_size")),
      dropout_(config.get<double>("dropout")),
      has_weight_norm_(config.get<bool>("weight_norm")),
      returns_sequences_(config.get<bool>("return_sequences")),
      has_head_(config.get<bool>("head")) {}

json TemporalConvolutions::do_build(const LayerSpec& spec) const {
  const TensorSpec& input = spec.inputs.front();
  if (spec.inputs.size() != 1 || input.sizes.size() != 3)
    throw DataError("takes one input of sequences [B, length, width], got " + input.text());
  json steps = json::array({"transpose"});
  std::int64_t in = input.width();
  std::int64_t dilation = 1;
  for (std::size_t i = 0; i < channels_.size(); ++i, dilation *= 2) {
    const std::int64_t out = channels_[i];
    json block = json::array({{{"use", "identity"}, {"tag", "x"}}});
    for (const std::string number : {"1", "2"}) {
      json convolution = named("conv1d", "conv" + number);
      convolution["out_channels"] = out;
      convolution["kernel_size"] = kernel_;
      convolution["dilation"] = dilation;
      convolution["padding"] = "causal";
      if (has_weight_norm_) {
        json around = named("weight_norm", convolution["name"]);
        convolution.erase("name");
        around["layer"] = std::move(convolution);
        convolution = std::move(around);
      }
      block.push_back(std::move(convolution));
      block.push_back({{"use", "relu"}});
      add_dropout(block, dropout_);
    }
    block.back()["tag"] = "f";
    std::string shortcut = "x";
    if (in != out) {
      shortcut = "shortcut";
      block.push_back({{"use", "at"}, {"tags", {"x"}}});
      json map = named("conv1d", "downsample");
      map["out_channels"] = out;
      map["kernel_size"] = 1;
      map["tag"] = shortcut;
      block.push_back(std::move(map));
    }
    block.push_back({{"use", "at"}, {"tags", {"f", shortcut}}});
    block.push_back({{"use", "merge"}, {"with", "add"}});
    block.push_back("relu");
    steps.push_back(part("network." + std::to_string(i), std::move(block)));
    in = out;
  }
  steps.push_back("transpose");
  if (!returns_sequences_)
    steps.push_back({{"use", "select"}, {"dim", 1}, {"index", -1}});
  if (has_head_)
    steps.push_back(named("head", "linear"));
  return steps;
}

// --- GPT

Gpt::Gpt(const Config& config)
    : width_(config.get<std::int64_t>("hidden_size")),
      layers_(config.get<std::int64_t>("num_layers")),
      heads_(config.get<std::int64_t>("num_heads")),
      feed_forward_(config.get_or<std::int64_t>("dim_feedforward", 4 * width_)),
      max_length_(config.get<std::int64_t>("max_length")),
      is_rotary_(config.get<std::string>("positions") == "rotary"),
      dropout_(config.get<double>("dropout")),
      is_tied_(config.get<bool>("tie_weights")),
      has_head_(config.get<bool>("head")) {
  expect_even_heads(config, "hidden_size");
}

json Gpt::do_build(const LayerSpec& spec) const {
  const TensorSpec& tokens = spec.inputs.front();
  if (!are_indices(tokens, 2))
    throw DataError("takes tokens [B, length] int64, got " + tokens.text());
  if (!is_rotary_ && tokens.sizes[1] != TensorSpec::kVaries && tokens.sizes[1] > max_length_) {
    throw DataError("has " + std::to_string(max_length_) + " positions (\"max_length\"), got " +
                    tokens.text());
  }
  json masks = json::array();
  json segments = json::array();
  for (std::size_t i = 1; i < spec.inputs.size(); ++i) {
    masks.push_back("mask_" + std::to_string(i));
    if (are_indices(spec.inputs[i], 2))
      segments.push_back(masks.back());
  }
  json steps = json::array();
  if (!masks.empty())
    steps.push_back({{"use", "input"}, {"names", masks}});
  json words = named("embedding", "wte");
  words["embedding_dim"] = width_;
  words["std"] = kInitialStd;
  steps.push_back(std::move(words));
  json decoder = named("graph", "h");
  decoder["builder"] = {
      {"use", "transformer_encoder"},
      {"num_layers", layers_},
      {"num_heads", heads_},
      {"dim_feedforward", feed_forward_},
      {"dropout", dropout_},
      {"activation", "gelu"},
      {"norm_first", true},
      {"final_norm", false},
      {"is_causal", true},
      {"init_std", kInitialStd},
      {"residual_init_std", kInitialStd / std::sqrt(2 * static_cast<double>(layers_))}};
  if (is_rotary_) {
    decoder["builder"]["rotary"] = json::object();
  } else {
    json positions = named("positional_encoding", "wpe");
    positions["max_length"] = max_length_;
    if (!segments.empty())
      positions["using"] = std::move(segments);
    steps.push_back(std::move(positions));
  }
  add_dropout(steps, dropout_);
  if (!masks.empty())
    decoder["using"] = std::move(masks);
  steps.push_back(std::move(decoder));
  steps.push_back(named("layer_norm", "ln_f"));
  if (has_head_) {
    json head = named("head", "lm_head");
    head["bias"] = false;
    if (is_tied_) {
      head["tied_to"] = "wte";
    } else {
      begin_normal(head);
    }
    steps.push_back(std::move(head));
  }
  return steps;
}

// --- BERT

Bert::Bert(const Config& config)
    : width_(config.get<std::int64_t>("hidden_size")),
      layers_(config.get<std::int64_t>("num_layers")),
      heads_(config.get<std::int64_t>("num_heads")),
      feed_forward_(config.get<std::int64_t>("dim_feedforward")),
      positions_(config.get<std::int64_t>("max_length")),
      types_(config.get<std::int64_t>("type_vocab_size")),
      dropout_(config.get<double>("dropout")),
      has_pooler_(config.get<bool>("pooler")),
      has_head_(config.get<bool>("head")) {
  expect_even_heads(config, "hidden_size");
}

json Bert::do_build(const LayerSpec& spec) const {
  const TensorSpec& tokens = spec.inputs.front();
  if (!are_indices(tokens, 2))
    throw DataError("takes tokens [B, length] int64, got " + tokens.text());
  if (tokens.sizes[1] != TensorSpec::kVaries && tokens.sizes[1] > positions_) {
    throw DataError("has " + std::to_string(positions_) + " positions (\"max_length\"), got " +
                    tokens.text());
  }
  const bool has_types = spec.inputs.size() > 1 && are_indices(spec.inputs[1], 2);
  json inputs = json::array();
  json masks = json::array();
  for (std::size_t i = 1; i < spec.inputs.size(); ++i) {
    const bool is_type = has_types && i == 1;
    const std::string tag = is_type ? "token_types" : "mask_" + std::to_string(i);
    inputs.push_back(tag);
    if (!is_type)
      masks.push_back(tag);
  }
  json steps = json::array();
  if (!inputs.empty())
    steps.push_back({{"use", "input"}, {"names", std::move(inputs)}});
  json words = named("embedding", "embeddings.word_embeddings");
  words["embedding_dim"] = width_;
  words["std"] = kInitialStd;
  if (has_types)
    words["tag"] = "words";
  steps.push_back(std::move(words));
  if (has_types) {
    json types = named("embedding", "embeddings.token_type_embeddings");
    types["embedding_dim"] = width_;
    types["num_embeddings"] = types_;
    types["std"] = kInitialStd;
    types["tag"] = "types";
    steps.push_back({{"use", "at"}, {"tags", {"token_types"}}});
    steps.push_back(std::move(types));
    steps.push_back({{"use", "at"}, {"tags", {"words", "types"}}});
    steps.push_back({{"use", "merge"}, {"with", "add"}});
  }
  json positions = named("positional_encoding", "embeddings.position_embeddings");
  positions["max_length"] = positions_;
  steps.push_back(std::move(positions));
  steps.push_back(named("layer_norm", "embeddings.LayerNorm"));
  add_dropout(steps, dropout_);
  json encoder = named("graph", "encoder");
  encoder["builder"] = {{"use", "transformer_encoder"}, {"num_layers", layers_},
                        {"num_heads", heads_},          {"dim_feedforward", feed_forward_},
                        {"dropout", dropout_},          {"activation", "gelu"},
                        {"init_std", kInitialStd}};
  if (!masks.empty())
    encoder["using"] = std::move(masks);
  steps.push_back(std::move(encoder));
  if (has_pooler_) {
    steps.push_back({{"use", "select"}, {"dim", 1}, {"index", 0}});
    json pooler = dense("pooler.dense", width_);
    begin_normal(pooler);
    steps.push_back(std::move(pooler));
    steps.push_back("tanh");
    add_dropout(steps, dropout_);
  }
  if (has_head_) {
    json head = named("head", "classifier");
    begin_normal(head);
    steps.push_back(std::move(head));
  }
  return steps;
}

}  // namespace treadle::networks

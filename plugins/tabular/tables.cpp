#include "tables.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>
#include <vector>

#include <treadle/base/error.h>

namespace treadle::tabular {

using nlohmann::json;

namespace {

json named(const std::string& layer, const std::string& name) {
  return {{"use", layer}, {"name", name}};
}

/// Continues from tagged values, which `with` merges where there are several.
void add_at(json& steps, const std::vector<std::string>& tags, json with = "add") {
  steps.push_back({{"use", "at"}, {"tags", tags}});
  if (tags.size() > 1)
    steps.push_back({{"use", "merge"}, {"with", std::move(with)}});
}

void add_dropout(json& steps, double p) {
  if (p > 0)
    steps.push_back({{"use", "dropout"}, {"p", p}});
}

/// The tag of a node's output: names may have dots, tags may not.
std::string tag_of(std::string name) {
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}

/// The widths of what a table has; 0: nothing of the kind.
struct TableInputs {
  std::int64_t features = 0;
  std::int64_t categories = 0;
};

constexpr const char* kReference = "reference";

TableInputs table_inputs(const LayerSpec& spec) {
  TableInputs table;
  for (std::size_t i = 0; i < spec.inputs.size(); ++i) {
    const TensorSpec& input = spec.inputs[i];
    const bool are_numbers = c10::isFloatingType(input.dtype);
    std::int64_t& width = are_numbers ? table.features : table.categories;
    const bool fits = input.sizes.size() == 2 && input.sizes.back() != TensorSpec::kVaries &&
                      (are_numbers || input.dtype == c10::ScalarType::Long);
    if (!fits || width > 0) {
      throw DataError(
          "takes numbers [B, features] and categories [B, columns] int64, one as the stream and "
          "the other as its reference, or one of them, got " +
          input.text());
    }
    width = input.width();
  }
  return table;
}

std::int64_t features_of(const LayerSpec& spec) {
  const TensorSpec& input = spec.inputs.front();
  if (spec.inputs.size() != 1 || input.sizes.size() != 2 || !c10::isFloatingType(input.dtype)) {
    throw DataError("takes one input of rows of numbers [B, width], got " + input.text() +
                    "; the builder \"table_embedding\" makes them of categories, too");
  }
  return input.width();
}

}  // namespace

TableEmbedding::TableEmbedding(const Config& config)
    : embedding_dim_(config.get<std::int64_t>("embedding_dim")),
      makes_tokens_(config.get<bool>("tokens")),
      numbers_(config.has("numbers") ? config.json().at("numbers") : json::array()) {
  if (makes_tokens_ && numbers_.empty()) {
    json tokenizer = named("feature_tokenizer", "tokenizer");
    tokenizer["embedding_dim"] = embedding_dim_;
    numbers_.push_back(std::move(tokenizer));
  }
}

json TableEmbedding::do_build(const LayerSpec& spec) const {
  static_cast<void>(table_inputs(spec));
  json steps = json::array();
  if (spec.inputs.size() == 1) {
    add_columns(steps, spec.inputs.front());
    return steps;
  }
  steps.push_back({{"use", "input"}, {"names", {kReference}}});
  const auto tagged = [&](const char* tag) {
    json last = {{"use", "identity"}};
    last["tag"] = tag;
    steps.push_back(std::move(last));
  };
  // The stream comes first, since it is here; numbers stand in front.
  add_columns(steps, spec.inputs[0]);
  tagged("of_stream");
  add_at(steps, {kReference});
  add_columns(steps, spec.inputs[1]);
  tagged("of_reference");
  const bool has_numbers_first = c10::isFloatingType(spec.inputs[0].dtype);
  add_at(steps,
         has_numbers_first ? std::vector<std::string>{"of_stream", "of_reference"}
                           : std::vector<std::string>{"of_reference", "of_stream"},
         {{"use", "cat"}, {"dim", 1}});
  return steps;
}

void TableEmbedding::add_columns(json& steps, const TensorSpec& columns) const {
  if (c10::isFloatingType(columns.dtype)) {
    steps.insert(steps.end(), numbers_.begin(), numbers_.end());
  } else {
    json embedding = named("embedding", "categories");
    embedding["embedding_dim"] = embedding_dim_;
    embedding["std"] = std::sqrt(1 / (3 * static_cast<double>(embedding_dim_)));
    steps.push_back(std::move(embedding));
  }
  if (!makes_tokens_)
    steps.push_back("flatten");
}

TabNet::TabNet(const Config& config)
    : decision_width_(config.get<std::int64_t>("n_d")),
      attention_width_(config.get<std::int64_t>("n_a")),
      steps_(config.get<std::int64_t>("n_steps")),
      relaxation_(config.get<double>("gamma")),
      independent_(config.get<std::int64_t>("n_independent")),
      shared_(config.get<std::int64_t>("n_shared")),
      sparsity_(config.get<double>("lambda_sparse")),
      mask_(config.get<std::string>("mask")),
      virtual_batch_size_(config.get<std::int64_t>("virtual_batch_size")),
      momentum_(config.get<double>("momentum")),
      has_head_(config.get<bool>("head")) {
  if (independent_ + shared_ == 0)
    config.fail("n_shared", "and \"n_independent\" are both 0; one of them must be 1 or more");
}

json TabNet::norm(const std::string& name) const {
  json step = named("ghost_batch_norm", name);
  step["virtual_batch_size"] = virtual_batch_size_;
  step["momentum"] = momentum_;
  return step;
}

/// Gated linear units one after the other, each but the first added to what it is given.
void TabNet::add_feature_transformer(json& steps, const std::string& name) const {
  const bool is_first = name == "initial";
  std::string before;
  for (std::int64_t i = 0; i < shared_ + independent_; ++i) {
    const bool is_shared = i < shared_;
    const std::string place =
        (is_shared ? ".shared." : ".own.") + std::to_string(is_shared ? i : i - shared_);
    json dense = named("dense", name + place + ".fc");
    dense["out_features"] = 2 * (decision_width_ + attention_width_);
    dense["bias"] = false;
    dense["init"] = "xavier_normal";
    if (is_shared && !is_first)
      dense["tied_to"] = "initial" + place + ".fc";
    steps.push_back(std::move(dense));
    steps.push_back(norm(name + place + ".bn"));
    json gate = {{"use", "glu"}};
    const std::string gated = tag_of(name + place + ".gated");
    gate["tag"] = gated;
    steps.push_back(std::move(gate));
    if (i > 0) {
      add_at(steps, {before, gated});
      json scale = {{"use", "scale"}, {"factor", std::numbers::sqrt2 / 2}};
      before = tag_of(name + place);
      scale["tag"] = before;
      steps.push_back(std::move(scale));
    } else {
      before = gated;
    }
  }
}

/// From what the attention is given to the tag "mask_<step>".
void TabNet::add_mask(json& steps, std::int64_t step, std::int64_t features) const {
  const std::string name = "attention." + std::to_string(step);
  json dense = named("dense", name + ".fc");
  dense["out_features"] = features;
  dense["bias"] = false;
  dense["init"] = "xavier_normal";
  steps.push_back(std::move(dense));
  steps.push_back(norm(name + ".bn"));
  if (step > 0) {
    json earlier = json::array();
    for (std::int64_t i = 0; i < step; ++i)
      earlier.push_back("mask_" + std::to_string(i));
    json prior = named("relaxed_prior", name + ".prior");
    prior["relaxation"] = relaxation_;
    prior["using"] = std::move(earlier);
    steps.push_back(std::move(prior));
  }
  steps.push_back(named(mask_, name + ".mask"));
  if (sparsity_ > 0) {
    json penalty = named("entropy_penalty", name + ".sparsity");
    penalty["weight"] = sparsity_ / static_cast<double>(steps_);
    steps.push_back(std::move(penalty));
  }
  steps.back()["tag"] = "mask_" + std::to_string(step);
}

json TabNet::do_build(const LayerSpec& spec) const {
  const std::int64_t features = features_of(spec);
  const auto narrow = [](std::int64_t start, std::int64_t length) {
    return json{{"use", "narrow"}, {"dim", 1}, {"start", start}, {"length", length}};
  };
  json norm = named("batch_norm", "initial_bn");
  norm["momentum"] = 0.01;
  norm["tag"] = "features";
  json steps = json::array({std::move(norm)});
  add_feature_transformer(steps, "initial");
  std::vector<std::string> decisions;
  for (std::int64_t step = 0; step < steps_; ++step) {
    const std::string number = std::to_string(step);
    steps.push_back(narrow(decision_width_, attention_width_));
    add_mask(steps, step, features);
    add_at(steps, {"features", "mask_" + number}, "multiply");
    add_feature_transformer(steps, "step." + number);
    json turned = {{"use", "identity"}};
    turned["tag"] = "turned_" + number;
    steps.push_back(std::move(turned));
    steps.push_back(narrow(0, decision_width_));
    json decided = {{"use", "relu"}};
    decisions.push_back("decision_" + number);
    decided["tag"] = decisions.back();
    steps.push_back(std::move(decided));
    if (step + 1 < steps_)
      add_at(steps, {"turned_" + number});
  }
  if (decisions.size() > 1)
    add_at(steps, decisions);
  if (has_head_)
    steps.push_back(named("head", "head"));
  return steps;
}

Saint::Saint(const Config& config)
    : width_(config.get<std::int64_t>("width")),
      layers_(config.get<std::int64_t>("num_layers")),
      heads_(config.get<std::int64_t>("num_heads")),
      feed_forward_(config.get_or<std::int64_t>("dim_feedforward", 4 * width_)),
      row_head_dim_(config.get<std::int64_t>("row_head_dim")),
      row_feed_forward_(config.get_or<std::int64_t>("row_dim_feedforward", 0)),
      references_(config.get<std::int64_t>("references")),
      hidden_(config.get<std::int64_t>("hidden")),
      dropout_(config.get<double>("dropout")),
      has_head_(config.get<bool>("head")) {
  if (width_ % heads_ != 0) {
    config.fail("num_heads", "has " + std::to_string(heads_) +
                                 " heads, which do not divide the width of " +
                                 std::to_string(width_));
  }
}

json Saint::do_build(const LayerSpec& spec) const {
  const TableInputs table = table_inputs(spec);
  const std::int64_t tokens = 1 + table.features + table.categories;
  const auto sublayer = [&](const std::string& name, const std::string& norm, json layer) {
    json body = json::array({named("layer_norm", norm), std::move(layer)});
    add_dropout(body, dropout_);
    json step = named("residual", name);
    step["body"] = std::move(body);
    return step;
  };
  const auto feed_forward = [&](std::int64_t width) {
    json step = named("gated_feed_forward", "feed_forward");
    step["hidden_features"] = width;
    step["activation"] = "gelu";
    step["dropout"] = dropout_;
    return step;
  };
  // A small network of its own for each number: 1, 100 with a ReLU, width.
  constexpr std::int64_t kHiddenOfNumbers = 100;
  json hidden = named("feature_tokenizer", "numbers_hidden");
  hidden["embedding_dim"] = kHiddenOfNumbers;
  json out = named("ensemble_dense", "numbers");
  out["members"] = table.features;
  out["out_features"] = width_;
  json embedding = named("graph", "embedding");
  embedding["builder"] = {{"use", "table_embedding"}, {"embedding_dim", width_}, {"tokens", true}};
  if (table.features > 0)
    embedding["builder"]["numbers"] = json::array({std::move(hidden), "relu", std::move(out)});
  json steps = json::array();
  if (spec.inputs.size() > 1) {
    steps.push_back({{"use", "input"}, {"names", {kReference}}});
    embedding["using"] = json::array({kReference});
  }
  steps.push_back(std::move(embedding));
  steps.push_back(named("class_token", "cls_token"));
  for (std::int64_t i = 0; i < layers_; ++i) {
    const std::string name = "layers." + std::to_string(i);
    json columns = named("attention", "attention");
    columns["num_heads"] = heads_;
    columns["head_dim"] = 16;
    columns["dropout"] = dropout_;
    steps.push_back(sublayer(name + ".columns", "norm", std::move(columns)));
    steps.push_back(sublayer(name + ".columns_feed_forward", "norm", feed_forward(feed_forward_)));
    steps.push_back("flatten");
    json rows = named("intersample_attention", "attention");
    rows["num_heads"] = heads_;
    rows["head_dim"] = row_head_dim_;
    rows["dropout"] = dropout_;
    rows["references"] = references_;
    steps.push_back(sublayer(name + ".rows", "norm", std::move(rows)));
    steps.push_back(
        sublayer(name + ".rows_feed_forward", "norm",
                 feed_forward(row_feed_forward_ > 0 ? row_feed_forward_ : tokens * width_)));
    steps.push_back({{"use", "unflatten"}, {"shape", {tokens, width_}}});
  }
  steps.push_back({{"use", "select"}, {"dim", 1}, {"index", 0}});
  steps.push_back(named("layer_norm", "norm"));
  if (has_head_) {
    json dense = named("dense", "hidden");
    dense["out_features"] = hidden_;
    steps.push_back(std::move(dense));
    steps.push_back("relu");
    steps.push_back(named("head", "head"));
  }
  return steps;
}

}  // namespace treadle::tabular

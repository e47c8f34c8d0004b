#include "flow_drawer.h"

#include <algorithm>
#include <cstdint>

#include <treadle/base/error.h>
#include <treadle/core/model/tensor_spec.h>

#include "bits/random_flow.h"

namespace treadle::testing {
namespace {

using nlohmann::json;

class FlowDrawer {
 public:
  FlowDrawer(Drawing& drawing, at::ScalarType dtype, bool is_ensemble)
      : drawing_(drawing), dtype_(dtype), is_ensemble_(is_ensemble) {}

  json steps() {
    std::vector<const PortSpec*> inputs;
    for (const PortSpec& port : drawing_.data.inputs) {
      if (!port.is_auxiliary())
        inputs.push_back(&port);
    }
    json steps = json::array();
    TensorSpec stream = spec_of(*inputs[0]);
    bool varies = std::find(inputs[0]->shape.begin(), inputs[0]->shape.end(), kVaries) !=
                  inputs[0]->shape.end();
    if (inputs.size() > 1 && drawing_.dice.chance(70)) {
      steps = joined(inputs, stream);
      varies = false;
    }
    if (varies || drawing_.has_positions() || drawing_.dice.chance(10)) {
      const json more = plain_steps(stream);
      steps.insert(steps.end(), more.begin(), more.end());
    } else {
      const RandomFlow random(drawing_.runtime.registry(), drawing_.dice.below(1'000'000), stream);
      if (!random.surprises().empty())
        throw ContractViolation(random.surprises().front());
      steps.insert(steps.end(), random.steps().begin(), random.steps().end());
      if (random.build()->results()[0]->sizes.size() > 2)
        steps.push_back("flatten");
    }
    add_heads(steps);
    return steps;
  }

 private:
  TensorSpec spec_of(const PortSpec& port) const {
    std::vector<std::int64_t> sizes{TensorSpec::kVaries};
    for (const std::int64_t size : port.shape)
      sizes.push_back(size == kVaries ? 5 : size);
    const bool is_index = port.role == Role::kTokens || port.role == Role::kCategories;
    return {sizes, is_index ? at::kLong : dtype_};
  }

  /// All inputs beside each other.
  json joined(const std::vector<const PortSpec*>& inputs, TensorSpec& stream) {
    json names = json::array();
    json tags = json::array();
    json steps = json::array();
    std::int64_t width = 0;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      std::int64_t elements = 1;
      for (const std::int64_t size : inputs[i]->shape)
        elements *= size;
      width += elements;
      if (i > 0) {
        names.push_back(inputs[i]->name);
        steps.push_back({{"use", "at"}, {"tags", json::array({inputs[i]->name})}});
      }
      if (inputs[i]->shape.size() == 1 && i > 0) {
        steps.erase(steps.size() - 1);
        tags.push_back(inputs[i]->name);
        continue;
      }
      tags.push_back("flat" + std::to_string(i));
      steps.push_back(
          {{"use", inputs[i]->shape.size() == 1 ? "identity" : "flatten"}, {"tag", tags.back()}});
    }
    const json input = {{"use", "input"}, {"names", names}};
    steps.insert(steps.begin(), input);
    steps.push_back({{"use", "at"}, {"tags", tags}});
    steps.push_back({{"use", "merge"}, {"with", "cat"}});
    stream.sizes = {TensorSpec::kVaries, width};
    return steps;
  }

  /// `step` with what describes the positions of the stream: perhaps segments and, where it takes
  /// padding, lengths or a mask.
  json described(json step, bool takes_padding) {
    json names = json::array();
    bool has_padding = !takes_padding;
    for (const PortSpec& port : drawing_.data.inputs) {
      const bool is_padding = port.role == Role::kLengths || port.role == Role::kMask;
      if (!port.is_auxiliary() || (is_padding && has_padding) || !drawing_.dice.chance(70))
        continue;
      has_padding = has_padding || is_padding;
      names.push_back(port.name);
    }
    if (!names.empty())
      step["using"] = std::move(names);
    return step;
  }

  /// Steps that keep positions, and work for rows of any length.
  json plain_steps(const TensorSpec& stream) {
    Dice& dice = drawing_.dice;
    json steps = json::array();
    if (stream.dtype == at::kLong)
      steps.push_back({{"use", "embedding"}, {"embedding_dim", dice.whole(2, 5)}});
    const bool is_sequence = stream.sizes.size() == 3 || stream.dtype == at::kLong;
    for (std::size_t count = 1 + dice.below(3); count-- > 0;) {
      const auto units = dice.whole(2, 6);
      const std::vector<json> choices{
          {{"use", "dense"}, {"out_features", units}, {"tag", "d" + std::to_string(count)}},
          "tanh",
          "layer_norm",
          {{"use", "dropout"}, {"p", 0.3}},
          {{"use", "gru"}, {"hidden_size", units}, {"return_sequences", true}},
          {{"use", "lstm"}, {"hidden_size", units}, {"return_sequences", true}},
          {{"use", "gated_feed_forward"}, {"hidden_features", units}},
          described({{"use", "attention"}, {"is_causal", dice.chance(50)}}, true),
          described({{"use", "positional_encoding"}, {"max_length", 8}}, false),
          described({{"use", "graph"},
                     {"builder",
                      {{"use", "transformer_encoder"},
                       {"num_layers", 1},
                       {"num_heads", 1},
                       {"dim_feedforward", units},
                       {"norm_first", dice.chance(50)}}}},
                    true)};
      steps.push_back(choices[dice.below(is_sequence ? choices.size() : 4)]);
    }
    if (is_sequence && !drawing_.has_positions() && dice.chance(50)) {
      steps.push_back({{"use", "gru"}, {"hidden_size", 4}, {"return_sequences", false}});
    } else if (is_sequence && !drawing_.has_positions()) {
      steps.push_back({{"use", "lstm"}, {"hidden_size", 3}, {"tag", {{"c_n", "cells"}}}});
      steps.push_back({{"use", "at"}, {"tags", {"cells"}}});
      steps.push_back("flatten");
    }
    return steps;
  }

  void add_heads(json& steps) {
    const auto& targets = drawing_.data.targets;
    if (is_ensemble_) {
      steps.push_back({{"use", "graph"},
                       {"builder",
                        {{"use", "tabm"},
                         {"width", drawing_.dice.whole(2, 6)},
                         {"num_layers", drawing_.dice.whole(1, 2)},
                         {"variant", drawing_.dice.chance(50) ? "tabm" : "tabm-mini"},
                         {"dropout", drawing_.dice.chance(50) ? 0 : 0.2}}}});
      return;
    }
    if (targets.size() == 1 || (!drawing_.has_positions() && drawing_.dice.chance(40))) {
      steps.push_back("head");
      return;
    }
    steps.push_back({{"use", "identity"}, {"tag", "trunk"}});
    for (const TargetSpec& target : targets) {
      if (&target != &targets[0])
        steps.push_back({{"use", "at"}, {"tags", json::array({"trunk"})}});
      steps.push_back({{"use", "head"}, {"output", target.name}, {"tag", target.name}});
    }
  }

  Drawing& drawing_;
  const at::ScalarType dtype_;
  const bool is_ensemble_;
};

}  // namespace

json draw_flow(Drawing& drawing, at::ScalarType dtype, bool is_ensemble) {
  return FlowDrawer(drawing, dtype, is_ensemble).steps();
}

}  // namespace treadle::testing

#include "dense.h"

#include <algorithm>
#include <string>

#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/near_miss.h>
#include <treadle/core/model/linear.h>
#include <treadle/core/training/objective.h>
#include <treadle/plan/lowerable.h>
#include <treadle/plan/ops.h>

#include "initialisers.h"

namespace treadle::layers {
namespace {

std::string text_of(const OutputSpec& output) {
  std::vector<std::int64_t> sizes{TensorSpec::kVaries};
  sizes.insert(sizes.end(), output.shape.begin(), output.shape.end());
  return quote_text(output.name) + " " + TensorSpec(sizes, c10::ScalarType::Float).text();
}

std::string text_of(const std::vector<OutputSpec>& outputs) {
  std::string text;
  for (const OutputSpec& output : outputs)
    text += (text.empty() ? "" : ", ") + text_of(output);
  return text;
}

std::vector<std::int64_t> positions_of(const OutputSpec& output) {
  return {output.shape.begin(), output.shape.end() - 1};
}

/// The one that `config` names, or all outputs beside each other.
OutputSpec required_output(const Config& config, const LayerSpec& spec) {
  const std::vector<OutputSpec>& outputs = spec.outputs;
  if (outputs.empty())
    throw DataError(
        "a head gets its width from the loss, but no loss is given here; use {\"use\": \"dense\", "
        "\"out_features\": ...}");
  if (const auto name = config.find<std::string>("output")) {
    const auto found = std::find_if(outputs.begin(), outputs.end(),
                                    [&](const OutputSpec& output) { return output.name == *name; });
    if (found != outputs.end())
      return *found;
    std::vector<std::string> names;
    for (const OutputSpec& output : outputs)
      names.push_back(output.name);
    throw DataError("the loss requires no output " + quote_text(*name) + "; expected one of " +
                    text_of(outputs) + did_you_mean(*name, names));
  }
  OutputSpec all = outputs.front();
  for (std::size_t i = 1; i < outputs.size(); ++i) {
    if (positions_of(outputs[i]) != positions_of(outputs[0])) {
      throw DataError("the loss requires " + text_of(outputs) +
                      ", whose positions differ; give each a head of its own: {\"use\": "
                      "\"head\", \"output\": " +
                      quote_text(outputs[0].name) + "}");
    }
    all.shape.back() += outputs[i].width();
  }
  return all;
}

/// Whether the stream has the positions from dimension `first` on.
bool has_positions(const TensorSpec& stream, const std::vector<std::int64_t>& positions,
                   std::size_t first) {
  if (stream.sizes.size() != positions.size() + 2)
    return false;
  for (std::size_t i = 0; i < positions.size(); ++i) {
    const std::int64_t size = stream.sizes[first + i];
    if (size != positions[i] && size != TensorSpec::kVaries && positions[i] != kVaries)
      return false;
  }
  return true;
}

/// The parameter "weight" [units, in] of another node.
at::Tensor weight_of(const std::string& node, const LayerSpec& spec, std::int64_t units,
                     std::int64_t in) {
  const torch::nn::Module* module = spec.module_of ? spec.module_of(node) : nullptr;
  at::Tensor weight;
  if (module != nullptr) {
    // A copy of the module's: what is found in it lives as long as it does.
    const auto parameters = module->named_parameters(/*recurse=*/false);
    if (const at::Tensor* const found = parameters.find("weight"))
      weight = *found;
  }
  if (!weight.defined()) {
    throw DataError("is tied to the weight of " + quote_text(node) +
                    ", but no node before it that is called so has a \"weight\"");
  }
  if (const std::vector<std::int64_t> wanted{units, in}; weight.sizes() != wanted) {
    throw DataError("needs a weight " + TensorSpec(wanted, spec.dtype).text() +
                    " [out, in], but that of " + quote_text(node) + " is " +
                    TensorSpec::of(weight).text());
  }
  return weight;
}

}  // namespace

/// Positions where one vector a row is wanted are mostly those of a sequence.
std::string advice(const std::vector<std::int64_t>& positions, const TensorSpec& stream) {
  return positions.empty() && stream.sizes.size() == 3
             ? "; make them one vector: \"return_sequences\": false in the layer before, or a "
               "\"select\" or \"reduce\" behind it"
             : "";
}

struct Head::Sizes {
  Sizes(const Config& config, const LayerSpec& spec) {
    const OutputSpec output = required_output(config, spec);
    const std::vector<std::int64_t> positions = positions_of(output);
    const TensorSpec& stream = only_input(spec);
    const auto channels = config.get<std::string>("channels");
    // All positions of a row at once, from one vector: a forecast of several steps.
    const bool are_known =
        std::find(positions.begin(), positions.end(), kVaries) == positions.end();
    if (!positions.empty() && stream.sizes.size() == 2 && are_known && channels == "auto") {
      row = output.shape;
      in = stream.width();
      width = std::accumulate(row.begin(), row.end(), std::int64_t{1}, std::multiplies<>());
      return;
    }
    const bool last = channels != "first" && has_positions(stream, positions, 1);
    const bool first = channels != "last" && has_positions(stream, positions, 2);
    if (!last && !first) {
      throw DataError("takes the positions of " + text_of(output) + " with channels " +
                      (channels == "auto" ? "last or first" : channels) + ", got " + stream.text() +
                      advice(positions, stream));
    }
    // A square image with as many channels: a guess would train on turned images without a word.
    if (last && first && positions.size() > 1) {
      throw DataError("cannot tell where the channels of " + stream.text() +
                      " are: both orders fit the positions of " + text_of(output) +
                      ". Set \"channels\": \"first\" (as convolutions leave them) or \"last\"");
    }
    channels_first = !last && !positions.empty();
    const std::int64_t size = channels_first ? stream.sizes[1] : stream.sizes.back();
    if (size == TensorSpec::kVaries)
      throw DataError("takes channels of a known number, got " + stream.text());
    in = size;
    width = output.width();
  }

  bool channels_first = false;
  std::vector<std::int64_t> row;
  std::int64_t in = 0;
  std::int64_t width = 0;
};

Dense::Dense(const Config& config, const LayerSpec& spec)
    : Dense(config, spec, expect_at_least(spec, 2, "rows of numbers [B, width]").width(),
            config.get<std::int64_t>("out_features")) {}

Dense::Dense(const Config& config, const LayerSpec& spec, std::int64_t in, std::int64_t units) {
  only_input(spec);
  const auto tied_to = config.find<std::string>("tied_to");
  weight_ = register_parameter("weight", tied_to ? weight_of(*tied_to, spec, units, in)
                                                 : at::empty({units, in}, spec.dtype));
  if (config.get<bool>("bias"))
    bias_ = register_parameter("bias", at::empty({units}, spec.dtype));
  const Initialiser begin = initialiser_of(config);
  if (!tied_to) {
    initialise(begin, weight_, bias_);
  } else if (bias_.defined()) {
    const at::NoGradGuard no_gradients;
    begin.bias(bias_, in);
  }
}

at::Tensor Dense::forward(const Inputs& inputs, LayerContext& context) {
  return forward_with(weight_, inputs, context);
}

at::Tensor Dense::forward_with(const at::Tensor& weight, const Inputs& inputs, LayerContext&) {
  return linear_in_precision(inputs[0], weight, bias_);
}

std::optional<PlanValue> Dense::lower(PlanBuilder& builder,
                                      std::span<const PlanValue> inputs) const {
  // With a bias, libtorch multiplies more dimensions in another way.
  const std::size_t dimensions = builder.spec(inputs[0]).sizes.size();
  if (dimensions != 2 && dimensions != 3)
    return std::nullopt;
  return builder.apply(plan_linear(weight_, bias_), inputs[0]);
}

Head::Head(const Config& config, const LayerSpec& spec) : Head(config, spec, Sizes(config, spec)) {}

Head::Head(const Config& config, const LayerSpec& spec, const Sizes& sizes)
    : Dense(config, spec, sizes.in, sizes.width),
      channels_first_(sizes.channels_first),
      row_(sizes.row) {}

at::Tensor Head::in_positions(at::Tensor values) const {
  if (row_.empty())
    return values;
  std::vector<std::int64_t> sizes{values.size(0)};
  sizes.insert(sizes.end(), row_.begin(), row_.end());
  return values.view(sizes);
}

at::Tensor Head::forward_with(const at::Tensor& weight, const Inputs& inputs,
                              LayerContext& context) {
  if (!channels_first_)
    return in_positions(Dense::forward_with(weight, inputs, context));
  const at::Tensor channels_last = inputs[0].movedim(1, -1);
  return Dense::forward_with(weight, {&channels_last, 1}, context);
}

std::optional<PlanValue> Head::lower(PlanBuilder& builder,
                                     std::span<const PlanValue> inputs) const {
  if (channels_first_)
    return std::nullopt;
  std::optional<PlanValue> value = Dense::lower(builder, inputs);
  if (!value || row_.empty())
    return value;
  std::vector<std::int64_t> sizes{builder.spec(inputs[0]).sizes[0]};
  sizes.insert(sizes.end(), row_.begin(), row_.end());
  return builder.reshape(*value, std::move(sizes));
}

}  // namespace treadle::layers

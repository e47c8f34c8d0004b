#include "transformers.h"

#include <string>
#include <utility>
#include <vector>

#include <treadle/base/error.h>

namespace treadle::transformers {
namespace {

using nlohmann::json;

const TensorSpec& expect_sequences(const LayerSpec& spec) {
  const TensorSpec& stream = spec.inputs.front();
  if (stream.sizes.size() != 3)
    throw DataError("takes sequences [B, length, width], got " + stream.text());
  return stream;
}

/// Two sequences, and what describes each of them.
struct SequencePair {
  Tags all;           ///< in the order of the references
  std::string other;  ///< the sequence that is no stream
  std::int64_t other_width = 0;
  Tags padding;        ///< of the stream
  Tags other_padding;  ///< none or one
  Tags segments;       ///< none, or the stream's and the other's
};

/// `alone`: which of the two a single description of padding belongs to.
enum class Alone { kStream, kOther };

SequencePair read_pair(const LayerSpec& spec, const std::string& other, Alone alone) {
  SequencePair pair;
  Tags paddings;
  std::string given;
  for (std::size_t i = 1; i < spec.inputs.size(); ++i) {
    const TensorSpec& input = spec.inputs[i];
    given += (given.empty() ? "" : ", ") + input.text();
    const std::size_t dimensions = input.sizes.size();
    const bool is_long = input.dtype == c10::ScalarType::Long;
    const bool is_mask = input.dtype == c10::ScalarType::Bool;
    std::string tag;
    if (c10::isFloatingType(input.dtype) && dimensions == 3 && pair.other.empty()) {
      tag = pair.other = other;
      pair.other_width = input.width();
    } else if ((is_long && dimensions == 1) || (is_mask && dimensions == 2)) {
      tag = "padding_" + std::to_string(paddings.size());
      paddings.push_back(tag);
    } else if (is_long && dimensions == 2) {
      tag = "segments_" + std::to_string(pair.segments.size());
      pair.segments.push_back(tag);
    } else {
      throw DataError("takes as references the " + other +
                      " [B, S, width], lengths [B] int64 or padding [B, S] bool, and segments "
                      "[B, S] int64 of both sequences, got " +
                      input.text());
    }
    pair.all.push_back(std::move(tag));
  }
  if (pair.other.empty()) {
    throw DataError("takes the " + other + " [B, S, width] as a reference, got " +
                    (given.empty() ? "none" : given));
  }
  if (paddings.size() > 2 || (!pair.segments.empty() && pair.segments.size() != 2)) {
    throw DataError(
        "takes one or two descriptions of padding, and segments of both sequences or of none, "
        "got " +
        given);
  }
  if (paddings.size() == 2 || (paddings.size() == 1 && alone == Alone::kStream))
    pair.padding = {paddings.front()};
  if (paddings.size() == 2 || (paddings.size() == 1 && alone == Alone::kOther))
    pair.other_padding = {paddings.back()};
  return pair;
}

Tags with_one(Tags tags, const Tags& segments, std::size_t index) {
  if (!segments.empty())
    tags.push_back(segments[index]);
  return tags;
}

}  // namespace

TransformerEncoder::TransformerEncoder(const Config& config)
    : blocks_(config),
      layers_(config.get<std::int64_t>("num_layers")),
      is_causal_(config.get<bool>("is_causal")),
      final_norm_(config.get_or("final_norm", config.get<bool>("norm_first"))) {}

json TransformerEncoder::do_build(const LayerSpec& spec) const {
  const std::int64_t width = expect_sequences(spec).width();
  Tags masks;
  for (std::size_t i = 1; i < spec.inputs.size(); ++i)
    masks.push_back("mask_" + std::to_string(i - 1));
  json steps = json::array();
  add_inputs(steps, masks);
  const json blocks = blocks_.encoder(layers_, width, is_causal_, masks);
  steps.insert(steps.end(), blocks.begin(), blocks.end());
  if (final_norm_)
    steps.push_back(blocks_.norm("norm"));
  return steps;
}

TransformerDecoder::TransformerDecoder(const Config& config)
    : blocks_(config),
      layers_(config.get<std::int64_t>("num_layers")),
      is_causal_(config.get<bool>("is_causal")),
      final_norm_(config.get_or("final_norm", config.get<bool>("norm_first"))) {}

json TransformerDecoder::do_build(const LayerSpec& spec) const {
  const std::int64_t width = expect_sequences(spec).width();
  const SequencePair pair = read_pair(spec, "memory", Alone::kOther);
  json steps = json::array();
  add_inputs(steps, pair.all);
  Tags of_memory = pair.other_padding;
  of_memory.insert(of_memory.end(), pair.segments.begin(), pair.segments.end());
  const json blocks = blocks_.decoder(
      layers_, width, is_causal_, with_one(pair.padding, pair.segments, 0), pair.other, of_memory);
  steps.insert(steps.end(), blocks.begin(), blocks.end());
  if (final_norm_)
    steps.push_back(blocks_.norm("norm"));
  return steps;
}

Transformer::Transformer(const Config& config)
    : blocks_(config),
      encoder_layers_(config.get<std::int64_t>("num_encoder_layers")),
      decoder_layers_(config.get<std::int64_t>("num_decoder_layers")),
      final_norm_(config.get<bool>("final_norm")) {}

json Transformer::do_build(const LayerSpec& spec) const {
  const std::int64_t width = expect_sequences(spec).width();
  const SequencePair pair = read_pair(spec, "target", Alone::kStream);
  const auto stack = [&](const char* name, const Tags& inputs, const json& blocks) {
    json flow = json::array();
    add_inputs(flow, inputs);
    flow.insert(flow.end(), blocks.begin(), blocks.end());
    if (final_norm_)
      flow.push_back(blocks_.norm("norm"));
    json step{{"use", "flow"}, {"name", name}, {"flow", std::move(flow)}};
    if (!inputs.empty())
      step["using"] = inputs;
    return step;
  };
  const Tags of_source = with_one(pair.padding, pair.segments, 0);
  const Tags of_target = with_one(pair.other_padding, pair.segments, 1);
  // Segments of the decoder's stream, which is the target, come first.
  Tags of_memory = pair.padding;
  of_memory.insert(of_memory.end(), pair.segments.rbegin(), pair.segments.rend());
  Tags inputs{"memory"};
  inputs.insert(inputs.end(), of_memory.begin(), of_memory.end());
  inputs.insert(inputs.end(), pair.other_padding.begin(), pair.other_padding.end());

  json steps = json::array();
  add_inputs(steps, pair.all);
  json encoder = stack("encoder", of_source,
                       blocks_.encoder(encoder_layers_, width, /*is_causal=*/false, of_source));
  encoder["tag"] = "memory";
  steps.push_back(std::move(encoder));
  steps.push_back({{"use", "at"}, {"tags", {pair.other}}});
  steps.push_back(stack("decoder", inputs,
                        blocks_.decoder(decoder_layers_, pair.other_width, /*is_causal=*/true,
                                        of_target, "memory", of_memory)));
  return steps;
}

}  // namespace treadle::transformers

#include "attention.h"

#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/stack.h>

#include <treadle/base/error.h>
#include <treadle/core/model/linear.h>

#include "cache.h"
#include "initialisers.h"
#include "padding.h"

namespace treadle::layers {

namespace {
constexpr std::string_view kWeights = "attn_weights";
constexpr std::string_view kCache = "keys_and_values";
constexpr const char* kWantedSequences = "sequences [B, length, width]";

std::int64_t head_dim_of(const Config& config, std::int64_t width, std::int64_t heads) {
  if (const auto head_dim = config.find<std::int64_t>("head_dim"))
    return *head_dim;
  if (width % heads != 0) {
    throw DataError("has " + std::to_string(heads) + " heads, which do not divide the width of " +
                    std::to_string(width) + "; set \"head_dim\" for heads of another width");
  }
  return width / heads;
}
}  // namespace

void Attention::check(const Config& config) {
  const auto heads = config.get<std::int64_t>("num_heads");
  const auto kv_heads = config.get_or<std::int64_t>("num_kv_heads", heads);
  if (heads % kv_heads != 0) {
    config.fail("num_kv_heads", "is " + std::to_string(kv_heads) + ", which does not divide the " +
                                    std::to_string(heads) + " of \"num_heads\"");
  }
  if (config.has("rotary"))
    Rotary::check(config.child("rotary"));
}

Attention::Attention(const Config& config, const LayerSpec& spec)
    : width_(expect_dimensions(spec, 3, kWantedSequences).width()),
      heads_(config.get<std::int64_t>("num_heads")),
      kv_heads_(config.get_or<std::int64_t>("num_kv_heads", heads_)),
      head_dim_(head_dim_of(config, width_, heads_)),
      roles_(spec, heads_),
      visibility_{config.get<bool>("is_causal"), config.find<std::int64_t>("window")},
      dropout_(config.get<double>("dropout")),
      has_cache_(spec.is_step_by_step && visibility_.is_causal && roles_.is_of_one_stream()) {
  if (config.has("rotary")) {
    if (roles_.memory)
      throw DataError(
          "has rotary positions, which two sequences do not share; it takes no other "
          "sequence, got " +
          spec.inputs[*roles_.memory].text());
    rotary_.emplace(config.child("rotary"), head_dim_);
  }
  const bool has_bias = config.get<bool>("bias");
  const Initialiser inner = initialiser_of(config);
  const auto add = [&](const std::string& name, std::int64_t out, std::int64_t in,
                       at::Tensor& weight, at::Tensor& bias, const Initialiser& rule) {
    weight = register_parameter(name + "_weight", at::empty({out, in}, spec.dtype));
    if (has_bias)
      bias = register_parameter(name + "_bias", at::empty({out}, spec.dtype));
    initialise(rule, weight, bias);
  };
  const std::int64_t of_queries = heads_ * head_dim_;
  const std::int64_t of_keys = 2 * kv_heads_ * head_dim_;
  add("in", roles_.memory ? of_queries : of_queries + of_keys, width_, in_weight_, in_bias_, inner);
  if (roles_.memory)
    add("memory", of_keys, spec.inputs[*roles_.memory].width(), memory_weight_, memory_bias_,
        inner);
  add("out", width_, of_queries, out_weight_, out_bias_, residual_initialiser_of(config));
}

std::vector<std::string> Attention::output_names() const {
  return {std::string(kWeights)};
}

/// Sizes that vary are those of one batch together, which zeros of sizes at will are not.
TensorSpec Attention::do_result(std::span<const TensorSpec> inputs) {
  return inputs.front();
}

/// [B, T, heads · d] as [B, heads, T, d]
at::Tensor Attention::split(const at::Tensor& rows, std::int64_t heads) const {
  return rows.reshape({rows.size(0), rows.size(1), heads, head_dim_}).transpose(1, 2);
}

Attention::Heads Attention::projected(const Inputs& inputs) const {
  const at::Tensor in = linear_in_precision(inputs[0], in_weight_, in_bias_);
  const std::int64_t of_queries = heads_ * head_dim_;
  const std::int64_t of_keys = kv_heads_ * head_dim_;
  if (!roles_.memory) {
    const auto parts = in.split_with_sizes({of_queries, of_keys, of_keys}, -1);
    return {split(parts[0], heads_), split(parts[1], kv_heads_), split(parts[2], kv_heads_)};
  }
  const auto parts =
      linear_in_precision(inputs[*roles_.memory], memory_weight_, memory_bias_).chunk(2, -1);
  return {split(in, heads_), split(parts[0], kv_heads_), split(parts[1], kv_heads_)};
}

void Attention::turn(Heads& heads, const Inputs& inputs,
                     std::optional<std::int64_t> first_position) const {
  const std::int64_t length = heads.queries.size(2);
  const std::int64_t first = first_position.value_or(0);
  const at::Tensor positions =
      roles_.segments && !first_position
          ? positions_in_segments(inputs[*roles_.segments])
          : at::arange(first, first + length, heads.queries.options().dtype(at::kLong));
  const RotaryAngles angles = rotary_->angles(positions, heads.queries.scalar_type());
  heads.queries = apply_rotary(heads.queries, angles);
  heads.keys = apply_rotary(heads.keys, angles);
}

/// Puts the keys and values of the calls before in front, and keeps all that a later call may see.
void Attention::continue_cache(Heads& heads, StateDict& state, std::int64_t first_position) const {
  const std::int64_t rows = heads.keys.size(0);
  const std::int64_t length = heads.keys.size(2);
  at::Tensor both = at::stack({heads.keys, heads.values}, 1);
  if (state.has_tensor(kCache))
    both = at::cat({cached_rows(state.tensor(kCache), rows), both}, 3);
  heads.keys = both.select(1, 0);
  heads.values = both.select(1, 1);
  const std::int64_t keys = both.size(3);
  if (visibility_.window && *visibility_.window < keys)
    both = both.narrow(3, keys - *visibility_.window, *visibility_.window).contiguous();
  state.put(kCache, both.detach());
  put_cached_positions(state, first_position + length);
}

at::Tensor Attention::forward(const Inputs& inputs, LayerContext& context) {
  const at::Tensor& x = inputs[0];
  Heads heads = projected(inputs);
  // Step by step there is one document, whatever the segments that the training had.
  const bool continues = has_cache_ && !is_training();
  const std::int64_t first_position = continues ? cached_positions(context.state()) : 0;
  if (rotary_)
    turn(heads, inputs, continues ? std::optional(first_position) : std::nullopt);
  if (continues)
    continue_cache(heads, context.state(), first_position);
  const double scale = 1 / std::sqrt(static_cast<double>(head_dim_));
  static const AttentionInputs kStreamAlone;
  const auto [scores, blind] =
      masked(grouped_matmul(heads.queries.mul(scale), heads.keys.transpose(-2, -1)),
             continues ? kStreamAlone : roles_, inputs, visibility_);
  at::Tensor weights = at::softmax(scores, -1);
  if (blind.defined())
    weights = weights.masked_fill(blind, 0);
  if (dropout_ > 0)
    weights = at::dropout(weights, dropout_, is_training());
  if (context.is_requested(kWeights))
    context.set_output(kWeights, weights.mean(1));
  const at::Tensor mixed = grouped_matmul(weights, heads.values)
                               .transpose(1, 2)
                               .reshape({x.size(0), x.size(1), heads_ * head_dim_});
  return linear_in_precision(mixed, out_weight_, out_bias_);
}

}  // namespace treadle::layers

#include "attention.h"

#include <cmath>
#include <limits>
#include <string>
#include <string_view>

#include <ATen/ops/dropout.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/softmax.h>

#include <treadle/base/error.h>
#include <treadle/core/linear.h>

#include "initialisers.h"
#include "padding.h"

namespace treadle::layers {

namespace {
constexpr std::string_view kWeights = "attn_weights";
}

Attention::Attention(const Config& config, const LayerSpec& spec)
    : heads_(config.get<std::int64_t>("num_heads")),
      dropout_(config.get<double>("dropout")),
      causal_(config.get<bool>("is_causal")) {
  constexpr const char* kWanted = "sequences [B, length, width]";
  width_ = expect_dimensions(spec, 3, kWanted).width();
  for (std::size_t i = 1; i < spec.inputs.size(); ++i) {
    std::optional<std::size_t>& role = describes_padding(spec.inputs[i]) ? padding_ : memory_;
    if (role) {
      throw DataError(
          "takes the stream and as references at most one sequence to look at and the lengths or "
          "the mask of what it looks at, got " +
          std::to_string(spec.inputs.size()) + " inputs");
    }
    role = i;
  }
  if (width_ % heads_ != 0) {
    throw DataError("has " + std::to_string(heads_) + " heads, which do not divide the width of " +
                    std::to_string(width_));
  }
  const bool to_itself = !memory_;
  const bool has_bias = config.get<bool>("bias");
  const auto& rule = initialiser("xavier_uniform");
  const auto add = [&](const std::string& name, std::int64_t out, std::int64_t in,
                       at::Tensor& weight, at::Tensor& bias) {
    weight = register_parameter(name + "_weight", at::empty({out, in}, spec.dtype));
    if (has_bias)
      bias = register_parameter(name + "_bias", at::empty({out}, spec.dtype));
    initialise(rule, weight, bias);
  };
  add("in", to_itself ? 3 * width_ : width_, width_, in_weight_, in_bias_);
  if (!to_itself) {
    const TensorSpec& memory = spec.inputs[*memory_];
    if (memory.sizes.size() != 3)
      throw DataError("takes " + std::string(kWanted) + " as its reference, got " + memory.text());
    add("memory", 2 * width_, memory.width(), memory_weight_, memory_bias_);
  }
  add("out", width_, width_, out_weight_, out_bias_);
}

std::vector<std::string> Attention::output_names() const {
  return {std::string(kWeights)};
}

/// [B, T, width] as [B, heads, T, width / heads]
at::Tensor Attention::heads_of(const at::Tensor& rows) const {
  return rows.reshape({rows.size(0), rows.size(1), heads_, -1}).transpose(1, 2);
}

at::Tensor Attention::forward(const Inputs& inputs, LayerContext& context) {
  const at::Tensor& x = inputs[0];
  at::Tensor queries = linear_in_precision(x, in_weight_, in_bias_);
  at::Tensor keys;
  at::Tensor values;
  if (!memory_) {
    const auto parts = queries.chunk(3, -1);
    queries = parts[0];
    keys = parts[1];
    values = parts[2];
  } else {
    const auto parts =
        linear_in_precision(inputs[*memory_], memory_weight_, memory_bias_).chunk(2, -1);
    keys = parts[0];
    values = parts[1];
  }
  const double scale = 1 / std::sqrt(static_cast<double>(width_ / heads_));
  at::Tensor scores = at::matmul(heads_of(queries).mul(scale), heads_of(keys).transpose(-2, -1));
  at::Tensor hidden;  // which keys a query does not see
  if (causal_) {
    hidden = at::ones({scores.size(-2), scores.size(-1)}, x.options().dtype(at::kBool)).triu_(1);
  }
  at::Tensor blind;  // queries that see nothing, whose softmax would be none
  if (padding_) {
    const at::Tensor padding =
        real_positions(inputs[*padding_], keys.size(1)).logical_not().unsqueeze(1).unsqueeze(1);
    hidden = hidden.defined() ? hidden.logical_or(padding) : padding;
    blind = hidden.all(-1, /*keepdim=*/true);
    hidden = hidden.logical_and(blind.logical_not());
  }
  if (hidden.defined())
    scores = scores.masked_fill(hidden, -std::numeric_limits<double>::infinity());
  at::Tensor weights = at::softmax(scores, -1);
  if (blind.defined())
    weights = weights.masked_fill(blind, 0);
  if (dropout_ > 0)
    weights = at::dropout(weights, dropout_, is_training());
  if (context.is_requested(kWeights))
    context.set_output(kWeights, weights.mean(1));
  const at::Tensor mixed =
      at::matmul(weights, heads_of(values)).transpose(1, 2).reshape({x.size(0), x.size(1), width_});
  return linear_in_precision(mixed, out_weight_, out_bias_);
}

}  // namespace treadle::layers

#include "embedding.h"

#include <cmath>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/add.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/embedding_dense_backward.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/stack.h>
#include <c10/core/GradMode.h>

#include <treadle/base/error.h>
#include <treadle/plan/lowerable.h>
#include <treadle/plan/op.h>

#include "cache.h"
#include "padding.h"

namespace treadle::layers {
namespace {

/// [..., width] for positions [...]: sin(t / 10000^(2i / width)) and cos of the same, in turns.
at::Tensor sines(const at::Tensor& positions, std::int64_t width, c10::ScalarType dtype) {
  const at::TensorOptions options = positions.options().dtype(at::kDouble);
  const at::Tensor index = at::arange(0, width, 2, options);
  const at::Tensor angle =
      positions.to(at::kDouble)
          .unsqueeze(-1)
          .mul(at::exp(index.mul(-std::log(10000.0) / static_cast<double>(width))));
  return at::stack({at::sin(angle), at::cos(angle)}, -1)
      .flatten(-2)
      .narrow(-1, 0, width)
      .to(dtype)
      .contiguous();
}

/// The rows of `weight` that these indices name.
at::Tensor looked_up(const at::Tensor& weight, const at::Tensor& indices) {
  try {
    return at::embedding(weight, indices);
  } catch (const std::exception&) {
    // Looked for only now: a pass over all indices, which a device would have to wait for.
    const std::int64_t least = indices.min().item<std::int64_t>();
    const std::int64_t most = indices.max().item<std::int64_t>();
    if (least >= 0 && most < weight.size(0))
      throw;
    throw DataError(
        "is given the index " + std::to_string(least < 0 ? least : most) + ", but has " +
        std::to_string(weight.size(0)) + " embeddings, which count from 0; " +
        (least < 0 ? "a missing category is -1: add {\"use\": \"impute\"} to transforms"
                   : "\"num_embeddings\" must be " + std::to_string(most + 1) + " or more"));
  }
}

/// One number, or one for each column; what the document leaves out the data knows.
std::vector<std::int64_t> table_sizes(const Config& config, const TensorSpec& input) {
  if (!config.has("num_embeddings")) {
    if (input.vocabulary.empty()) {
      throw DataError("\"num_embeddings\" is missing, and how many indices " + input.text() +
                      " may have is not known here");
    }
    return input.vocabulary;
  }
  if (config.json().at("num_embeddings").is_array())
    return config.get<std::vector<std::int64_t>>("num_embeddings");
  return {config.get<std::int64_t>("num_embeddings")};
}

class EmbeddingOp final : public PlanOp {
 public:
  explicit EmbeddingOp(at::Tensor weight) : weight_(std::move(weight)) {}

  std::string_view name() const override { return "embedding"; }
  bool allocates() const override { return true; }
  Reads backward_reads() const override { return {.inputs = false, .output = false}; }

  /// The indices.
  std::vector<TensorSpec> keeps(std::span<const TensorSpec>) const override {
    return std::vector<TensorSpec>(1);
  }

  void forward(const Inputs& inputs, at::Tensor& output,
               std::span<at::Tensor> kept) const override {
    // A copy: the input's memory may be used again before backward.
    kept[0] = inputs[0].clone();
    output = looked_up(weight_, kept[0]);
  }

  void backward(const PlanGradients& gradients) const override {
    if (gradients.of_parameters[0].defined()) {
      gradients.of_parameters[0].add_(
          at::embedding_dense_backward(gradients.of_output, gradients.kept[0], weight_.size(0),
                                       /*padding_idx=*/-1, /*scale_grad_by_freq=*/false));
    }
    // Indices have no gradient.
  }

  std::vector<at::Tensor> parameters() const override { return {weight_}; }

 private:
  at::Tensor weight_;
};

/// x plus the same for every row.
class PositionalEncodingOp final : public PlanOp {
 public:
  explicit PositionalEncodingOp(at::Tensor vectors) : vectors_(std::move(vectors)) {}

  std::string_view name() const override { return "positional_encoding"; }
  TensorSpec result(std::span<const TensorSpec> inputs) const override { return inputs[0]; }
  Reads backward_reads() const override { return {.inputs = false, .output = false}; }

  void forward(const Inputs& inputs, at::Tensor& output, std::span<at::Tensor>) const override {
    at::add_out(output, inputs[0], vectors_);
  }

  void backward(const PlanGradients& gradients) const override {
    if (gradients.wanted[0])
      gradients.of_inputs[0].copy_(gradients.of_output);
    if (gradients.of_parameters[0].defined())
      gradients.of_parameters[0].add_(gradients.of_output.sum({0}));
  }

  /// Sines are none: they need no gradient.
  std::vector<at::Tensor> parameters() const override { return {vectors_}; }

 private:
  at::Tensor vectors_;
};

}  // namespace

Embedding::Embedding(const Config& config, const LayerSpec& spec) {
  const TensorSpec& input = only_input(spec);
  if (input.dtype != c10::ScalarType::Long) {
    throw DataError("takes indices of tokens or categories, int64 [B, ...], got numbers " +
                    input.text() +
                    "; data reads integers as numbers unless it is told otherwise: \"role\": "
                    "\"tokens\" of an array, \"categorical\" of a table");
  }
  const std::vector<std::int64_t> sizes = table_sizes(config, input);
  const bool is_listed =
      config.has("num_embeddings") && config.json().at("num_embeddings").is_array();
  by_column_ = sizes.size() > 1 || is_listed;
  if (by_column_ &&
      (input.sizes.size() < 2 || input.sizes.back() != static_cast<std::int64_t>(sizes.size()))) {
    throw DataError("has tables for " + std::to_string(sizes.size()) + " columns [B, " +
                    std::to_string(sizes.size()) + "], got " + input.text());
  }
  const at::NoGradGuard no_gradients;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    at::Tensor weight =
        at::empty({sizes[i], config.get<std::int64_t>("embedding_dim")}, spec.dtype);
    weight.normal_(0, config.get<double>("std"));
    weights_.push_back(
        register_parameter(by_column_ ? "weight_" + std::to_string(i) : "weight", weight));
  }
}

at::Tensor Embedding::forward(const Inputs& inputs, LayerContext&) {
  if (!by_column_)
    return looked_up(weights_[0], inputs[0]);
  std::vector<at::Tensor> columns;
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    try {
      columns.push_back(looked_up(weights_[i], inputs[0].select(-1, static_cast<std::int64_t>(i))));
    } catch (const DataError& error) {
      throw DataError("column " + std::to_string(i) + ": " + error.what());
    }
  }
  return at::stack(columns, -2);
}

std::optional<PlanValue> Embedding::lower(PlanBuilder& builder,
                                          std::span<const PlanValue> inputs) const {
  if (by_column_)
    return std::nullopt;
  return builder.apply(std::make_shared<EmbeddingOp>(weights_[0]), inputs[0]);
}

NamesParameterRoles::Roles Embedding::parameter_roles() const {
  Roles roles;
  for (const at::Tensor& weight : weights_)
    roles.emplace_back(weight, ParameterRole::kTable);
  return roles;
}

void PositionalEncoding::check(const Config& config) {
  if (config.has("max_length") && config.get<std::string>("kind") == "sinusoidal") {
    config.fail("max_length",
                "has no effect with \"kind\": \"sinusoidal\", which has vectors for all positions; "
                "leave it out");
  }
}

PositionalEncoding::PositionalEncoding(const Config& config, const LayerSpec& spec)
    : width_(expect_dimensions(spec, 3, "sequences [B, length, width]").width()),
      dtype_(spec.dtype),
      has_segments_(spec.inputs.size() > 1),
      has_cache_(spec.is_step_by_step) {
  const TensorSpec& input = spec.inputs.front();
  const std::int64_t length = input.sizes[1];
  const bool is_known = length != TensorSpec::kVaries;
  if (has_segments_) {
    const TensorSpec& segments = spec.inputs[1];
    const bool are_segments = segments.dtype == c10::ScalarType::Long && segments.sizes.size() == 2;
    if (spec.inputs.size() > 2 || !are_segments) {
      throw DataError(
          "takes one reference at most, the segments [B, length] int64 of packed "
          "documents, got " +
          spec.inputs.back().text());
    }
    if (is_known && segments.sizes[1] != TensorSpec::kVaries && segments.sizes[1] != length) {
      throw DataError("the segments are " + segments.text() + ", but the sequences " +
                      input.text());
    }
  }
  if (config.get<std::string>("kind") == "sinusoidal") {
    if (is_known && !has_cache_) {
      vectors_ = register_buffer("vectors", sines(at::arange(length, at::kLong), width_, dtype_));
    }
    return;
  }
  if (!is_known && !config.has("max_length")) {
    throw DataError("takes sequences of one length, got " + input.text() +
                    "; set \"max_length\" for sequences up to a length, or \"kind\": "
                    "\"sinusoidal\"");
  }
  const auto count = config.get_or<std::int64_t>("max_length", length);
  if (is_known && !has_segments_ && length > count) {
    throw DataError("has vectors for " + std::to_string(count) +
                    " positions (\"max_length\"), got " + input.text());
  }
  const at::NoGradGuard no_gradients;
  vectors_ = at::empty({count, width_}, dtype_);
  vectors_.normal_(0, 0.02);
  register_parameter("weight", vectors_);
}

/// [..., width] for positions [...]
at::Tensor PositionalEncoding::at_positions(const at::Tensor& positions) const {
  if (!vectors_.defined())
    return sines(positions, width_, dtype_);
  try {
    return at::embedding(vectors_, positions);
  } catch (const std::exception&) {
    // Looked for only now, as in looked_up().
    const std::int64_t last = positions.max().item<std::int64_t>();
    if (last < vectors_.size(0))
      throw;
    throw DataError("has vectors for " + std::to_string(vectors_.size(0)) +
                    " positions, but a segment has " + std::to_string(last + 1) +
                    "; raise \"max_length\"");
  }
}

/// [length, width] for the positions from `first` on.
at::Tensor PositionalEncoding::from(std::int64_t first, std::int64_t length,
                                    c10::Device device) const {
  if (!vectors_.defined())
    return at_positions(
        at::arange(first, first + length, at::TensorOptions(device).dtype(at::kLong)));
  const std::int64_t count = vectors_.size(0);
  if (first + length > count) {
    throw DataError("has vectors for " + std::to_string(count) +
                    " positions, but the sequence has " + std::to_string(first + length) +
                    "; raise \"max_length\"");
  }
  return length == count ? vectors_ : vectors_.narrow(0, first, length);
}

at::Tensor PositionalEncoding::forward(const Inputs& inputs, LayerContext& context) {
  const at::Tensor& x = inputs[0];
  const bool continues = has_cache_ && !is_training();
  if (has_segments_ && !continues) {
    if (inputs[1].size(1) != x.size(1)) {
      throw DataError("the segments have " + std::to_string(inputs[1].size(1)) +
                      " positions, but the sequences have " + std::to_string(x.size(1)));
    }
    return x.add(at_positions(positions_in_segments(inputs[1])));
  }
  if (!continues)
    return x.add(from(0, x.size(1), x.device()));
  const std::int64_t first = cached_positions(context.state());
  put_cached_positions(context.state(), first + x.size(1));
  return x.add(from(first, x.size(1), x.device()));
}

std::optional<PlanValue> PositionalEncoding::lower(PlanBuilder& builder,
                                                   std::span<const PlanValue> inputs) const {
  if (has_segments_ || has_cache_ || !vectors_.defined() ||
      builder.spec(inputs[0]).sizes[1] != vectors_.size(0))
    return std::nullopt;
  return builder.apply(std::make_shared<PositionalEncodingOp>(vectors_), inputs[0]);
}

}  // namespace treadle::layers

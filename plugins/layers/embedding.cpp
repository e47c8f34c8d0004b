#include "embedding.h"

#include <cmath>
#include <memory>
#include <string>
#include <utility>

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
#include <c10/util/Exception.h>

#include <treadle/base/error.h>

namespace treadle::layers {
namespace {

/// [length, width]: sin(t / 10000^(2i / width)) and cos of the same, in turns.
at::Tensor sines(std::int64_t length, std::int64_t width, c10::ScalarType dtype) {
  const at::Tensor position = at::arange(length, at::kDouble).unsqueeze(1);
  const at::Tensor index = at::arange(0, width, 2, at::TensorOptions(at::kDouble));
  const at::Tensor angle =
      position.mul(at::exp(index.mul(-std::log(10000.0) / static_cast<double>(width))));
  return at::stack({at::sin(angle), at::cos(angle)}, 2)
      .reshape({length, -1})
      .narrow(1, 0, width)
      .to(dtype)
      .contiguous();
}

/// The rows of `weight` that these numbers of categories name.
at::Tensor looked_up(const at::Tensor& weight, const at::Tensor& numbers) {
  try {
    return at::embedding(weight, numbers);
  } catch (const c10::Error&) {
    // Looked for only now: a pass over all numbers, which a device would have to wait for.
    const std::int64_t least = numbers.min().item<std::int64_t>();
    const std::int64_t most = numbers.max().item<std::int64_t>();
    if (least >= 0 && most < weight.size(0))
      throw;
    throw DataError("is given the category " + std::to_string(least < 0 ? least : most) +
                    ", but has " + std::to_string(weight.size(0)) +
                    " categories, which count from 0; " +
                    (least < 0 ? "these seem to be no numbers of categories"
                               : "say \"categories\": " + std::to_string(most + 1) +
                                     " or more where these are numbers of categories at all"));
  }
}

class EmbeddingOp final : public PlanOp {
 public:
  explicit EmbeddingOp(at::Tensor weight) : weight_(std::move(weight)) {}

  std::string_view name() const override { return "embedding"; }
  bool allocates() const override { return true; }
  Reads backward_reads() const override { return {.inputs = false, .output = false}; }

  /// The numbers of the categories.
  std::vector<TensorSpec> keeps(std::span<const TensorSpec>) const override {
    return std::vector<TensorSpec>(1);
  }

  void forward(const Inputs& inputs, at::Tensor& output,
               std::span<at::Tensor> kept) const override {
    kept[0] = inputs[0].to(at::kLong);
    output = looked_up(weight_, kept[0]);
  }

  void backward(const PlanGradients& gradients) const override {
    if (gradients.of_parameters[0].defined()) {
      gradients.of_parameters[0].add_(
          at::embedding_dense_backward(gradients.of_output, gradients.kept[0], weight_.size(0),
                                       /*padding_idx=*/-1, /*scale_grad_by_freq=*/false));
    }
    // Numbers of categories have no gradient.
  }

  std::vector<at::Tensor> parameters() const override { return {weight_}; }

 private:
  at::Tensor weight_;
};

/// x plus the same for every row.
class PositionsOp final : public PlanOp {
 public:
  explicit PositionsOp(at::Tensor vectors) : vectors_(std::move(vectors)) {}

  std::string_view name() const override { return "positions"; }
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
  only_input(spec);
  const at::NoGradGuard no_gradients;
  weight_ = at::empty({config.get<std::int64_t>("categories"), config.get<std::int64_t>("width")},
                      spec.dtype);
  weight_.normal_();
  register_parameter("weight", weight_);
}

at::Tensor Embedding::forward(const Inputs& inputs, LayerContext&) {
  return looked_up(weight_, inputs[0].to(at::kLong));
}

std::optional<PlanValue> Embedding::plan(PlanBuilder& builder,
                                         std::span<const PlanValue> inputs) const {
  return builder.apply(std::make_shared<EmbeddingOp>(weight_), inputs[0]);
}

Positions::Positions(const Config& config, const LayerSpec& spec) {
  only_input(spec);
  const TensorSpec& input = expect_dimensions(spec, 3, "sequences [B, length, width]");
  const std::int64_t length = input.sizes[1];
  if (length == TensorSpec::kVaries)
    throw DataError("takes sequences of one length, got " + input.text());
  if (config.get<std::string>("kind") == "sines") {
    vectors_ = register_buffer("vectors", sines(length, input.width(), spec.dtype));
    return;
  }
  const at::NoGradGuard no_gradients;
  vectors_ = at::empty({length, input.width()}, spec.dtype);
  vectors_.normal_(0, 0.02);
  register_parameter("weight", vectors_);
}

at::Tensor Positions::forward(const Inputs& inputs, LayerContext&) {
  return inputs[0].add(vectors_);
}

std::optional<PlanValue> Positions::plan(PlanBuilder& builder,
                                         std::span<const PlanValue> inputs) const {
  return builder.apply(std::make_shared<PositionsOp>(vectors_), inputs[0]);
}

}  // namespace treadle::layers

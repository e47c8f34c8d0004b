#include "embedding.h"

#include <cmath>
#include <string>

#include <ATen/ops/arange.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/stack.h>
#include <c10/core/GradMode.h>

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
  return at::embedding(weight_, inputs[0].to(at::kLong));
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

}  // namespace treadle::layers

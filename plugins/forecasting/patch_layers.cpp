#include "patch_layers.h"

#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/baddbmm.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/zeros.h>

#include <treadle/base/error.h>
#include <treadle/core/model/linear.h>

#include "linear_weights.h"

namespace treadle::forecasting {
namespace {

constexpr double kNormEps = 1e-5;
constexpr double kNormMomentum = 0.1;
constexpr double kPositionBound = 0.02;

/// The stream, [B, channels, patches, …]; the last two sizes are known.
const TensorSpec& patches_in(const LayerSpec& spec) {
  const TensorSpec& patches = spec.inputs.at(0);
  if (patches.sizes.size() != 4 || patches.sizes[2] == TensorSpec::kVaries)
    throw DataError("takes patches [B, channels, patches, width] of windows of one length, got " +
                    patches.text());
  return patches;
}

}  // namespace

// --- Patches

Patches::Patches(const Config& config, const LayerSpec& spec)
    : length_(config.get<std::int64_t>("patch_len")),
      stride_(config.get<std::int64_t>("stride")),
      padding_(config.get<std::int64_t>("end_padding")) {
  const TensorSpec& windows = spec.inputs.at(0);
  if (spec.inputs.size() != 1 || windows.sizes.size() != 3)
    throw DataError("takes windows [B, steps, channels], got " + windows.text());
  const std::int64_t steps = windows.sizes[1];
  if (steps != TensorSpec::kVaries && steps + padding_ < length_) {
    throw DataError("a patch has " + std::to_string(length_) +
                    " steps (\"patch_len\"), and a window " + std::to_string(steps) + " with " +
                    std::to_string(padding_) +
                    " behind its end; make the lookback longer or patches shorter");
  }
}

at::Tensor Patches::forward(const Inputs& inputs, LayerContext&) {
  const at::Tensor series = inputs[0].transpose(1, 2);
  if (padding_ == 0)
    return series.unfold(2, length_, stride_).contiguous();
  const at::Tensor last = series.narrow(2, series.size(2) - 1, 1).expand({-1, -1, padding_});
  return at::cat({series, last}, 2).unfold(2, length_, stride_).contiguous();
}

// --- PatchEmbedding

PatchEmbedding::PatchEmbedding(const Config& config, const LayerSpec& spec) {
  const TensorSpec& patches = patches_in(spec);
  if (spec.inputs.size() != 1)
    throw DataError("takes one input, got " + std::to_string(spec.inputs.size()));
  const auto width = config.get<std::int64_t>("out_features");
  weight_ = register_parameter("weight", linear_weight(width, patches.width(), spec.dtype));
  bias_ = register_parameter("bias", linear_bias(width, patches.width(), spec.dtype));
  positions_ = register_parameter(
      "positions",
      at::empty({patches.sizes[2], width}, spec.dtype).uniform_(-kPositionBound, kPositionBound));
}

at::Tensor PatchEmbedding::forward(const Inputs& inputs, LayerContext&) {
  return linear_in_precision(inputs[0], weight_, bias_) + positions_;
}

// --- PatchEncoderLayer

PatchEncoderLayer::PatchEncoderLayer(const Config& config, const LayerSpec& spec)
    : width_(patches_in(spec).width()),
      heads_(config.get<std::int64_t>("num_heads")),
      dropout_(config.get<double>("dropout")),
      attention_dropout_(config.get<double>("attention_dropout")),
      dropouts_(register_module(
          "dropouts", std::make_shared<Dropouts>(dropout_ > 0 || attention_dropout_ > 0))) {
  const TensorSpec& patches = patches_in(spec);
  if (width_ % heads_ != 0) {
    config.fail("num_heads", "must divide the width " + std::to_string(width_) +
                                 ": each head has its share of it");
  }
  if (spec.inputs.size() > 2)
    throw DataError("takes one reference, the scores of the layer before, got " +
                    std::to_string(spec.inputs.size() - 1));
  if (spec.inputs.size() == 2) {
    const std::vector<std::int64_t>& scores = spec.inputs[1].sizes;
    const std::vector<std::int64_t> expected{patches.sizes[0], patches.sizes[1], heads_,
                                             patches.sizes[2], patches.sizes[2]};
    if (scores != expected) {
      throw DataError("takes the scores of a layer of as many heads, " +
                      TensorSpec(expected, spec.dtype).text() + ", got " + spec.inputs[1].text());
    }
  }
  const auto inner = config.get<std::int64_t>("dim_feedforward");
  in_ = linear("in", 3 * width_, width_, spec.dtype);
  out_ = linear("out", width_, width_, spec.dtype);
  norm1_ = norm("norm1", spec.dtype);
  linear1_ = linear("linear1", inner, width_, spec.dtype);
  linear2_ = linear("linear2", width_, inner, spec.dtype);
  norm2_ = norm("norm2", spec.dtype);
}

PatchEncoderLayer::Linear PatchEncoderLayer::linear(const std::string& name, std::int64_t out,
                                                    std::int64_t in, c10::ScalarType dtype) {
  Linear linear;
  linear.weight = register_parameter(name + "_weight", linear_weight(out, in, dtype));
  linear.bias = register_parameter(name + "_bias", linear_bias(out, in, dtype));
  return linear;
}

PatchEncoderLayer::Norm PatchEncoderLayer::norm(const std::string& name, c10::ScalarType dtype) {
  Norm norm;
  norm.weight = register_parameter(name + "_weight", at::ones({width_}, dtype));
  norm.bias = register_parameter(name + "_bias", at::zeros({width_}, dtype));
  norm.statistics = {register_buffer(name + "_running_mean", at::zeros({width_}, dtype)),
                     register_buffer(name + "_running_var", at::ones({width_}, dtype)),
                     kNormMomentum};
  return norm;
}

void PatchEncoderLayer::begin_gathering() {
  norm1_.statistics.begin_gathering();
  norm2_.statistics.begin_gathering();
}

void PatchEncoderLayer::end_gathering() {
  norm1_.statistics.end_gathering();
  norm2_.statistics.end_gathering();
}

at::Tensor PatchEncoderLayer::normed(Norm& norm, const at::Tensor& rows) const {
  return at::batch_norm(rows, norm.weight, norm.bias, norm.statistics.mean(), norm.statistics.var(),
                        is_training(), is_training() ? norm.statistics.next_momentum() : 0,
                        kNormEps,
                        /*cudnn_enabled=*/true);
}

at::Tensor PatchEncoderLayer::dropped(const at::Tensor& values, double rate) const {
  return dropouts_->is_training() && rate > 0 ? at::dropout(values, rate, /*train=*/true) : values;
}

at::Tensor PatchEncoderLayer::forward(const Inputs& inputs, LayerContext& context) {
  const at::Tensor& x = inputs[0];
  const std::int64_t sequences = x.size(0) * x.size(1);
  const std::int64_t patches = x.size(2);
  const std::int64_t head_width = width_ / heads_;
  if (is_training() && sequences * patches == 1) {
    throw TrainingError(
        "batch norm cannot train on one value a channel; choose a batch_size that leaves no single "
        "row over, or set \"drop_last\"");
  }
  const at::Tensor rows = x.view({sequences * patches, width_});
  // [3, sequences, heads, patches, head_width], so that each is a batch of matrices.
  const at::Tensor projected = linear_in_precision(rows, in_.weight, in_.bias)
                                   .view({sequences, patches, 3, heads_, head_width})
                                   .permute({2, 0, 3, 1, 4})
                                   .contiguous()
                                   .view({3, sequences * heads_, patches, head_width});
  const at::Tensor queries = projected[0] * (1 / std::sqrt(static_cast<double>(head_width)));
  const at::Tensor keys = projected[1].transpose(1, 2);
  const at::Tensor scores =
      inputs.size() == 2
          ? at::baddbmm(inputs[1].view({sequences * heads_, patches, patches}), queries, keys)
          : at::bmm(queries, keys);
  if (context.is_requested("scores"))
    context.set_output("scores", scores.view({x.size(0), x.size(1), heads_, patches, patches}));
  const at::Tensor mixed =
      at::bmm(dropped(at::softmax(scores, -1), attention_dropout_), projected[2])
          .view({sequences, heads_, patches, head_width})
          .transpose(1, 2)
          .reshape({sequences * patches, width_});
  const double kept_twice = (1 - dropout_) * (1 - dropout_);
  const at::Tensor attended = normed(
      norm1_, rows + dropped(linear_in_precision(mixed, out_.weight, out_.bias), 1 - kept_twice));
  const at::Tensor inner =
      dropped(at::gelu(linear_in_precision(attended, linear1_.weight, linear1_.bias)), dropout_);
  return normed(norm2_,
                attended +
                    dropped(linear_in_precision(inner, linear2_.weight, linear2_.bias), dropout_))
      .view(x.sizes());
}

}  // namespace treadle::forecasting

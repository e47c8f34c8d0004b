#pragma once

#include <vector>

#include <treadle/core/model/abilities/takes_weight.h>
#include <treadle/core/model/layer.h>
#include <treadle/plan/lowerable.h>

#include "stream.h"

namespace treadle::layers {

/// Cross-correlation over 1, 2 or 3 dimensions: [B, in, …] to [B, out_channels, …]. "weight"
/// [channels, in / groups, kernel …], "bias" [channels]. Sizes as in torch.nn.Conv. With "padding"
/// "causal", zeros stand in front only, as many as the filter reaches back.
template <std::size_t kDimensions>
class Convolution final : public Layer, public Lowerable, public TakesWeight {
 public:
  Convolution(const Config& config, const LayerSpec& spec);
  static void check(const Config& config);

  at::Tensor forward(const Inputs& inputs, LayerContext& context) override;
  std::optional<PlanValue> lower(PlanBuilder& builder,
                                 std::span<const PlanValue> inputs) const override;
  const at::Tensor& own_weight() const override { return weight_; }
  at::Tensor forward_with(const at::Tensor& weight, const Inputs& inputs,
                          LayerContext& context) override;

 private:
  std::vector<std::int64_t> stride_;
  std::vector<std::int64_t> padding_;
  std::vector<std::int64_t> dilation_;
  std::int64_t groups_;
  std::int64_t zeros_in_front_ = 0;  // where it is causal
  at::Tensor weight_;
  at::Tensor bias_;
};

/// The transpose of a convolution, which makes images larger: [B, in, …] to [B, out_channels, …].
/// "weight" [in, channels / groups, kernel …]. Sizes as in torch.nn.ConvTranspose.
template <std::size_t kDimensions>
class TransposedConvolution final : public Layer, public TakesWeight {
 public:
  TransposedConvolution(const Config& config, const LayerSpec& spec);
  static void check(const Config& config);

  at::Tensor forward(const Inputs& inputs, LayerContext& context) override;
  const at::Tensor& own_weight() const override { return weight_; }
  at::Tensor forward_with(const at::Tensor& weight, const Inputs& inputs,
                          LayerContext& context) override;
  std::int64_t output_dim() const override { return 1; }

 private:
  at::Tensor convolve(const at::Tensor& input, const at::Tensor& weight,
                      const at::Tensor& bias) const;

  std::vector<std::int64_t> stride_;
  std::vector<std::int64_t> padding_;
  std::vector<std::int64_t> output_padding_;
  std::vector<std::int64_t> dilation_;
  std::int64_t groups_;
  at::Tensor weight_;
  at::Tensor bias_;
};

}  // namespace treadle::layers

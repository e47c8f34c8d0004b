#pragma once

#include <treadle/core/model/abilities/gathers_statistics.h>
#include <treadle/core/model/layer.h>
#include <treadle/core/model/running_statistics.h>
#include <treadle/plan/lowerable.h>

#include "stream.h"

namespace treadle::layers {

/// Over the batch and everything behind the channels (dimension 1), with running statistics for
/// evaluation. Ioffe and Szegedy (2015). "weight", "bias", buffers "running_mean", "running_var".
class BatchNorm final : public Layer, public Lowerable, public GathersStatistics {
 public:
  BatchNorm(const Config& config, const LayerSpec& spec);
  at::Tensor forward(const Inputs& inputs, LayerContext& context) override;
  std::optional<PlanValue> lower(PlanBuilder& builder,
                                 std::span<const PlanValue> inputs) const override;
  void begin_gathering() override { statistics_.begin_gathering(); }
  void end_gathering() override { statistics_.end_gathering(); }

 private:
  double eps_;
  at::Tensor weight_;
  at::Tensor bias_;
  RunningStatistics statistics_;
};

/// Over the last dimension of each position. Ba et al. (2016). "weight", "bias".
class LayerNorm final : public Layer, public Lowerable {
 public:
  LayerNorm(const Config& config, const LayerSpec& spec);
  at::Tensor forward(const Inputs& inputs, LayerContext& context) override;
  std::optional<PlanValue> lower(PlanBuilder& builder,
                                 std::span<const PlanValue> inputs) const override;

 private:
  double eps_;
  at::Tensor weight_;
  at::Tensor bias_;
  std::int64_t width_;
};

/// x / sqrt(mean(x²) + eps) · weight over the last dimension. Zhang and Sennrich (2019).
class RmsNorm final : public Layer, public Lowerable {
 public:
  RmsNorm(const Config& config, const LayerSpec& spec);
  at::Tensor forward(const Inputs& inputs, LayerContext& context) override;
  std::optional<PlanValue> lower(PlanBuilder& builder,
                                 std::span<const PlanValue> inputs) const override;

 private:
  double eps_;
  at::Tensor weight_;
};

/// Over groups of channels (dimension 1) and everything behind them, row by row. Wu and He (2018).
/// As many groups as channels is instance norm, one group normalizes the whole row.
class GroupNorm final : public Layer, public Lowerable {
 public:
  GroupNorm(const Config& config, const LayerSpec& spec);
  at::Tensor forward(const Inputs& inputs, LayerContext& context) override;
  std::optional<PlanValue> lower(PlanBuilder& builder,
                                 std::span<const PlanValue> inputs) const override;

 private:
  std::int64_t groups_;
  double eps_;
  at::Tensor weight_;
  at::Tensor bias_;
};

/// Over the positions of each channel (dimension 1), row by row: [B, channels, positions...].
/// Ulyanov et al. (2016); torch.nn.InstanceNorm1d to 3d without running statistics. "weight" and
/// "bias" [channels] if affine.
class InstanceNorm final : public Layer, public Lowerable {
 public:
  InstanceNorm(const Config& config, const LayerSpec& spec);
  at::Tensor forward(const Inputs& inputs, LayerContext& context) override;
  std::optional<PlanValue> lower(PlanBuilder& builder,
                                 std::span<const PlanValue> inputs) const override;

 private:
  std::int64_t channels_;
  double eps_;
  at::Tensor weight_;
  at::Tensor bias_;
};

}  // namespace treadle::layers

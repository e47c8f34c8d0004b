#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <treadle/core/model/abilities/adds_losses.h>
#include <treadle/core/model/abilities/gathers_statistics.h>
#include <treadle/core/model/layer.h>
#include <treadle/core/model/running_statistics.h>
#include <treadle/plan/lowerable.h>

/// What TabNet needs beside dense layers and sparsemax. Arik and Pfister, "TabNet: Attentive
/// Interpretable Tabular Learning" (2021); the form is that of the package pytorch-tabnet.
namespace treadle::tabular {

/// Batch normalization of virtual batches: in training, a batch of n rows [n, width] is cut into
/// ceil(n / virtual_batch_size) parts, as even as possible and of two rows or more, and each is
/// normalized by its own statistics. Running statistics take one part after the other; evaluation
/// uses them. Hoffer et al., "Train longer, generalize better" (2017). "weight", "bias", buffers
/// "running_mean", "running_var", as of torch.nn.BatchNorm1d.
class GhostBatchNorm final : public Layer, public Lowerable, public GathersStatistics {
 public:
  GhostBatchNorm(const Config& config, const LayerSpec& spec);
  at::Tensor forward(const Inputs& inputs, LayerContext& context) override;
  std::optional<PlanValue> lower(PlanBuilder& builder,
                                 std::span<const PlanValue> inputs) const override;
  /// Each part counts the same.
  void begin_gathering() override { statistics_.begin_gathering(); }
  void end_gathering() override { statistics_.end_gathering(); }

 private:
  at::Tensor normed_parts(const at::Tensor& rows, std::int64_t parts);

  std::int64_t virtual_batch_size_;
  double eps_;
  at::Tensor weight_;
  at::Tensor bias_;
  RunningStatistics statistics_;
};

/// Scores times how much the masks before left of each feature: z · Π (relaxation - mask), over the
/// references, each of the stream's shape. With a relaxation of 1 a feature that one mask took
/// whole is not available again.
class RelaxedPrior final : public Layer, public Lowerable {
 public:
  RelaxedPrior(const Config& config, const LayerSpec& spec);
  at::Tensor forward(const Inputs& inputs, LayerContext& context) override;
  std::optional<PlanValue> lower(PlanBuilder& builder,
                                 std::span<const PlanValue> inputs) const override;

 private:
  TensorSpec do_result(std::span<const TensorSpec> inputs) override { return inputs.front(); }

  double relaxation_;
};

/// Passes distributions p [B, ..., width] on, and adds weight · Σ -p log(p + eps) of each row to
/// the loss in training, as "entropy": the fewer numbers a row has above 0, the better.
class EntropyPenalty final : public Layer, public Lowerable, public AddsLosses {
 public:
  EntropyPenalty(const Config& config, const LayerSpec& spec);
  at::Tensor forward(const Inputs& inputs, LayerContext& context) override;
  std::optional<PlanValue> lower(PlanBuilder& builder,
                                 std::span<const PlanValue> inputs) const override;
  std::vector<std::string> loss_names() const override { return {"entropy"}; }

 private:
  TensorSpec do_result(std::span<const TensorSpec> inputs) override { return inputs.front(); }

  double weight_;
  double eps_;
};

/// x times a number.
class Scale final : public Layer, public Lowerable {
 public:
  Scale(const Config& config, const LayerSpec& spec);
  at::Tensor forward(const Inputs& inputs, LayerContext& context) override;
  std::optional<PlanValue> lower(PlanBuilder& builder,
                                 std::span<const PlanValue> inputs) const override;

 private:
  TensorSpec do_result(std::span<const TensorSpec> inputs) override { return inputs.front(); }

  double factor_;
};

}  // namespace treadle::tabular

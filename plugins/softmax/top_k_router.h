#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <treadle/base/component.h>
#include <treadle/core/model/abilities/adds_losses.h>
#include <treadle/core/model/abilities/logs_values.h>
#include <treadle/core/model/layer.h>
#include <treadle/core/model/logged_values.h>

namespace treadle::softmax {

/// Weights of the experts of a mixture, [..., width] to [..., N]: P = softmax((x Wᵀ + b + noise) /
/// temperature), of which the top_k largest stay and the others are 0. Further inputs are added to
/// x. What stays is divided by its sum, unless "normalize" is false.
///
/// Each row of the last dimension is a token. In training, with "capacity_factor" c, an expert
/// takes at most ceil(c · top_k · tokens / N) of them: first choices before second ones, and in the
/// order of the batch; beyond, weights are 0. Lepikhin et al., "GShard" (2021).
///
/// Adds to the loss, for each row of the batch:
/// - "balance": balance_coefficient · N · sum over i of f_i P_i. f_i is the share of choices that
///   fell on expert i, P_i the mean of its P. Fedus, Zoph & Shazeer, "Switch Transformers" (2021).
///   Even experts give balance_coefficient.
/// - "z": z_coefficient · the mean of (log of the sum of exp(logits))². Zoph et al., "ST-MoE"
///   (2022). It keeps logits small.
///
/// Logs the least and the largest f_i, "load_min" and "load_max", and the share of choices that a
/// full expert "dropped".
class TopKRouter final : public Layer, public AddsLosses, public LogsValues {
 public:
  TopKRouter(const Config& config, const LayerSpec& spec, std::shared_ptr<Layer> softmax);
  at::Tensor forward(const Inputs& inputs, LayerContext& context) override;
  std::vector<std::string> loss_names() const override;
  std::vector<std::string> logged_names() const override;

 private:
  at::Tensor logits(const Inputs& inputs) const;

  std::int64_t experts_;
  std::int64_t top_k_;
  double temperature_;
  double noise_;
  double capacity_factor_;  // 0: no limit
  double balance_coefficient_;
  double z_coefficient_;
  bool normalizes_;
  std::shared_ptr<Layer> softmax_;  // null: softmax of the last dimension
  at::Tensor weight_;               // [N, width]
  at::Tensor bias_;                 // [N]
};

class TopKRouterFactory final : public LayerFactory {
 public:
  TopKRouterFactory(const Config& config, const ComponentContext& context);

 private:
  std::shared_ptr<Layer> do_create(const LayerSpec& spec) const override;

  Config config_;
  std::unique_ptr<LayerFactory> softmax_;
};

}  // namespace treadle::softmax

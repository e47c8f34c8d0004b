#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <treadle/base/component.h>
#include <treadle/core/components/plugin_registry.h>
#include <treadle/core/model/abilities/gathers_statistics.h>
#include <treadle/core/model/abilities/takes_weight.h>
#include <treadle/core/model/layer.h>

/// Layers around another one that compute its weight from what is trained.
namespace treadle::layers {

/// The layer within, with a weight that derived classes make of its own one. Its parameters are
/// "layer.weight", "layer.bias", ….
class NormedWeight : public Layer {
 public:
  at::Tensor forward(const Inputs& inputs, LayerContext& context) final;

 protected:
  /// Throws a DataError for a layer without a weight that may be replaced. `name`: of this one.
  NormedWeight(const std::string& name, std::shared_ptr<Layer> layer);

  const at::Tensor& own_weight() const { return takes_->own_weight(); }
  std::int64_t output_dim() const { return takes_->output_dim(); }

 private:
  virtual at::Tensor normed(const at::Tensor& weight) = 0;

  std::shared_ptr<Layer> layer_;
  TakesWeight* takes_;  // the same
};

/// Direction and length of a weight are learned apart: W = g · V / ‖V‖, where V is the layer's
/// weight and the norm is over all dimensions but one. "weight_g" [n, 1, …] begins as ‖V‖, so that
/// W begins as V.
///
/// Source: Salimans and Kingma, "Weight Normalization" (2016). The dimension is the first, as in
/// torch.nn.utils.weight_norm.
class WeightNorm final : public NormedWeight {
 public:
  WeightNorm(const Config& config, std::shared_ptr<Layer> layer);

 private:
  at::Tensor normed(const at::Tensor& weight) override;

  std::int64_t dim_;
  at::Tensor g_;
};

/// W / σ(W), where σ is the largest singular value of the weight as a matrix [outputs, …]: what the
/// layer computes changes by at most as much as its input. σ = uᵀ W v, and every forward of a
/// training improves the buffers "u" and "v" by steps of power iteration:
///
///     u = W v / ‖W v‖,   v = Wᵀ u / ‖Wᵀ u‖
///
/// They begin at random with 15 steps. Gradients take them as constants.
///
/// Source: Miyato et al., "Spectral Normalization for Generative Adversarial Networks" (2018), in
/// the form of torch.nn.utils.parametrizations.spectral_norm.
class SpectralNorm final : public NormedWeight, public GathersStatistics {
 public:
  SpectralNorm(const Config& config, std::shared_ptr<Layer> layer);
  /// The vectors are those of the weight, whatever the batches.
  void begin_gathering() override;
  void end_gathering() override {}

 private:
  at::Tensor normed(const at::Tensor& weight) override;
  at::Tensor as_matrix(const at::Tensor& weight) const;
  void iterate(const at::Tensor& matrix, std::int64_t steps);

  std::int64_t power_iterations_;
  double eps_;
  at::Tensor u_;
  at::Tensor v_;
};

/// The factory of a layer around the one in the slot "layer".
template <typename L>
class MadeAround final : public LayerFactory {
 public:
  MadeAround(const Config& config, const ComponentContext& context)
      : config_(config), layer_(make_nested<LayerFactory>(context, config, "layer")) {}

 private:
  std::shared_ptr<Layer> do_create(const LayerSpec& spec) const override {
    return std::make_shared<L>(config_, layer_->create(spec));
  }

  Config config_;
  std::unique_ptr<LayerFactory> layer_;
};

}  // namespace treadle::layers

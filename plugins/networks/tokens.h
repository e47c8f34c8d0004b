#pragma once

#include <memory>

#include <treadle/base/config.h>
#include <treadle/core/model/abilities/names_parameter_roles.h>
#include <treadle/core/model/layer.h>

/// The tokens that transformers take instead of images and tables.
namespace treadle::networks {

/// A learned vector in front of each sequence: [B, T, width] to [B, T + 1, width]. "weight"
/// [width], N(0, 0.02²) at first. The [class] token of Devlin et al., "BERT" (2019).
class ClassToken final : public Layer {
 public:
  ClassToken(const Config& config, const LayerSpec& spec);
  at::Tensor forward(const Inputs& inputs, LayerContext& context) override;

 private:
  at::Tensor weight_;
};

/// A vector for each number: [B, ..., features] to [B, ..., features, embedding_dim],
///
///     token_j = x_j · weight_j + bias_j
///
/// Gorishniy et al., "Revisiting Deep Learning Models for Tabular Data" (2021), section 3.3.
/// "weight" and "bias" [features, embedding_dim], uniform in ±1 / √embedding_dim at first.
class FeatureTokenizer final : public Layer, public NamesParameterRoles {
 public:
  FeatureTokenizer(const Config& config, const LayerSpec& spec);
  at::Tensor forward(const Inputs& inputs, LayerContext& context) override;
  Roles parameter_roles() const override { return all(ParameterRole::kTable, {weight_, bias_}); }

 private:
  at::Tensor weight_;
  at::Tensor bias_;
};

}  // namespace treadle::networks

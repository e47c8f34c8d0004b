#pragma once

#include <cstdint>

#include <treadle/core/model/abilities/names_parameter_roles.h>
#include <treadle/core/model/layer.h>

#include "stream.h"

/// Dense layers of an ensemble whose members are trained as one model: [B, members, in], or
/// [B, in] for all of them, to [B, members, units].
///
/// Names and initial values are those of the package `tabm` of Gorishniy, Kotelnikov and Babenko,
/// "TabM: Advancing Tabular Deep Learning with Parameter-Efficient Ensembling" (2025).
namespace treadle::layers {

/// Members share a weight and scale what goes into it and comes out of it:
///
///     y_i = ((x_i ∘ r_i) Wᵀ) ∘ s_i + b_i
///
/// "r" [members, in], "weight" [units, in], "s" and "bias" [members, units]. With "adapters":
/// "input" there is no s, and "bias" [units] is shared. W and b are uniform within ±1 / sqrt(in) at
/// first, b the same for each member; s is 1; r is 1, a random sign or N(0, 1).
///
/// Wen, Tran and Ba, "BatchEnsemble" (2020).
class BatchEnsembleDense final : public Layer, public NamesParameterRoles {
 public:
  BatchEnsembleDense(const Config& config, const LayerSpec& spec);
  at::Tensor forward(const Inputs& inputs, LayerContext& context) override;
  Roles parameter_roles() const override { return all(ParameterRole::kTable, {r_, s_, bias_}); }

 private:
  at::Tensor r_;
  at::Tensor weight_;
  at::Tensor s_;     // undefined: 1
  at::Tensor bias_;  // undefined: 0
};

/// Each member has a weight of its own: "weight" [members, in, units], "bias" [members, units],
/// uniform within ±1 / sqrt(in) at first.
class EnsembleDense final : public Layer, public NamesParameterRoles {
 public:
  EnsembleDense(const Config& config, const LayerSpec& spec);
  at::Tensor forward(const Inputs& inputs, LayerContext& context) override;
  Roles parameter_roles() const override;

 private:
  at::Tensor weight_;
  at::Tensor bias_;  // undefined: 0
};

}  // namespace treadle::layers

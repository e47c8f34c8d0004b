#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include <treadle/base/component.h>
#include <treadle/base/config.h>
#include <treadle/core/training/draws_samples.h>
#include <treadle/core/training/fits_targets.h>
#include <treadle/core/training/loss.h>
#include <treadle/core/training/predicts_uncertainty.h>

namespace treadle::losses {

/// The mean of a loss over the members of an ensemble that is trained as one model. Each member has
/// outputs and a loss of its own, so members stay different; the prediction is the mean of theirs:
/// of probabilities, of numbers. A sample is that of one member, drawn for each row: together they
/// are samples of the mixture of the members' distributions. The uncertainty is that of the members
/// with equal weights.
///
/// Source: Gorishniy, Kotelnikov and Babenko, "TabM: Advancing Tabular Deep Learning with
/// Parameter-Efficient Ensembling" (2025), section 3.3.
///
/// The outputs of the other loss, with the members in front of their width:
/// [B, positions..., members, width].
class EnsembleLoss final : public Loss,
                           public FitsTargets,
                           public DrawsSamples,
                           public PredictsUncertainty {
 public:
  EnsembleLoss(const Config& config, const ComponentContext& context);

 private:
  /// `loss` of the state that fitted() was given.
  EnsembleLoss(std::unique_ptr<Loss> loss, std::int64_t members);

  std::vector<OutputSpec> do_outputs_for(const TargetSpec& target) const override;
  LossTerms do_forward(const std::vector<at::Tensor>& outputs,
                       const TargetBatch& target) const override;
  at::Tensor do_weight(const TargetBatch& target) const override;
  Prediction do_prediction(const std::vector<at::Tensor>& outputs) const override;
  void* do_ask(std::string_view interface_id) override;
  StateDict do_fit(const RowReader& data, const RowList& rows, std::size_t target) const override;
  std::unique_ptr<Loss> do_fitted(const StateDict& state) const override;
  at::Tensor do_draw(const std::vector<at::Tensor>& outputs,
                     std::span<const std::uint64_t> seeds) const override;

  Prediction::Uncertainty do_uncertainty(const std::vector<at::Tensor>& outputs) const override;

  /// [B, positions..., members, width] as [B * members, positions..., width].
  std::vector<at::Tensor> as_rows(const std::vector<at::Tensor>& outputs) const;
  /// [B * members, ...] as [B, members, ...].
  at::Tensor by_members(const at::Tensor& rows) const;
  /// The mean over members of [B * members, ...].
  at::Tensor mean_of_members(const at::Tensor& rows) const;

  std::unique_ptr<Loss> loss_;
  std::int64_t members_;
};

}  // namespace treadle::losses

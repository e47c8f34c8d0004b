#pragma once

#include <span>

#include <ATen/core/Tensor.h>

#include <treadle/core/data/data_spec.h>
#include <treadle/core/validation/predictions.h>
#include <treadle/host/record/search_result.h>

namespace treadle::internal {

/// How the predictions of the members of an ensemble become one.
///
/// kLinear: their weighted sum. kLogarithmic, of probabilities only: p_c ~ exp(b_c + sum_m w_m log
/// p_mc), each label of kLabels for itself (C. Genest and J. Zidek, "Combining probability
/// distributions", Statistical Science 1(1), 1986); several that are sure of the same make it
/// surer, which a mean cannot.
struct PredictionPool {
  enum class Kind { kLinear, kLogarithmic };

  Kind kind = Kind::kLinear;
  at::Tensor weights;    ///< float64 [members, 1], or [members, width]: for each number or label
  at::Tensor intercept;  ///< b, float64 [width]; undefined: zeros. Of kLogarithmic

  /// `predictions`: as Prediction::values of a target of this kind, of each member, all of one
  /// shape and dtype, which the result has too.
  at::Tensor operator()(TargetKind target, std::span<const at::Tensor> predictions) const;
};

/// Why the loss of an ensemble is undefined: a loss is one of a model's outputs.
inline constexpr const char* kNoLossOfEnsemble =
    "an ensemble of several models has no loss of its own";

/// Of an ensemble, whose members' shares are the weights of its pool, divided by their sum; equal
/// ones for a number or label for which all are 0. That of a logarithmic pool is that of the mean
/// with these shares, too.
Prediction::Uncertainty pooled_uncertainty(const PredictionPool& pool,
                                           std::span<const Prediction> members);

/// Into an ensemble that has its members.
void write_pool(const PredictionPool& pool, EnsembleResult& ensemble);
/// Throws a StorageError for weights that are no numbers, or do not fit each other.
PredictionPool read_pool(const EnsembleResult& ensemble);

/// Of probabilities, what a logarithmic pool adds up: log p for classes and distributions, the log
/// odds for labels. float64; probabilities closer to 0 or 1 than float32 tells are taken as that
/// close.
at::Tensor logits_of(TargetKind target, const at::Tensor& probabilities);

}  // namespace treadle::internal

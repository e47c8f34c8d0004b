#pragma once

#include <span>

#include <ATen/core/Tensor.h>

#include <treadle/core/data/data_spec.h>

#include "model/prediction_pool.h"

namespace treadle::internal {

/// Stacked generalization (D. Wolpert, Neural Networks 5(2), 1992): how to pool predictions, fitted
/// to what the members predicted for N rows that none of them was trained on.
///
/// - Numbers: the linear pool with the least squared error whose weights are not negative, for each
///   number of a vector (L. Breiman, "Stacked regressions", Machine Learning 24, 1996).
/// - Classes, labels, distributions: the logarithmic pool with the least cross-entropy whose
///   weights are not negative; each label for itself, as two classes. A penalty keeps it at the
///   pool of equal weights where rows say little: the sum over rows has (|w - 1/members|^2 + |b|^2)
///   / 2 beside it, the strength that scikit-learn's LogisticRegression has by default.
///
/// `predictions`: as Prediction::values, [N, positions..., width], one of each member. `targets`:
/// as TargetBatch::values. `weights`: [N, positions...]; undefined: 1 each. All on the CPU. The
/// same arguments give the same bits.
PredictionPool fit_stacking(TargetKind target, std::span<const at::Tensor> predictions,
                            const at::Tensor& targets, const at::Tensor& weights);

/// What such pools predict for the same N rows, each row by a pool that was fitted without it: with
/// every fifth row left out in turn, the first fifth from row 0 on. Expects N >= 2.
at::Tensor cross_fitted(TargetKind target, std::span<const at::Tensor> predictions,
                        const at::Tensor& targets, const at::Tensor& weights);

}  // namespace treadle::internal

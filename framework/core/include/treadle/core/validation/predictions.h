#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/core/data/target_spec.h>

namespace treadle {

/// Model outputs for one target, as users read them.
struct Prediction {
  TargetKind kind = TargetKind::kNumbers;
  /// Classes, distributions: probabilities [B, positions..., C] that sum to 1 (C >= 2, also for two
  /// classes with one logit). Labels: a probability for each, [B, positions..., C]. Numbers:
  /// [B, positions..., width], in the data's units once transforms have been inverted.
  at::Tensor values;
  /// The outputs that probabilities were made of, before rounding makes them 0 or 1: logits
  /// [B, positions..., C], for two classes perhaps one, that of the second. What metrics rank by.
  /// Undefined where values have no logits.
  at::Tensor logits = {};

  /// Further numbers about the same target, shaped and scaled like `values`: a quantile.
  struct Extra {
    std::string name;  ///< "q0.9"
    at::Tensor values;
    /// Of a quantile, in (0, 1); NaN for anything else.
    double level = std::numeric_limits<double>::quiet_NaN();
  };
  std::vector<Extra> extras = {};
  /// Where quantiles that are outputs of their own had to be put in order, bool [B, positions...].
  /// Undefined where none can cross.
  at::Tensor crossed = {};

  /// The decision on the probabilities. Classes: the index of one, int64 [B, positions...];
  /// labels: which of them are there, bool [B, positions..., C]. Undefined where nothing was
  /// decided beside what is likeliest: see decided().
  at::Tensor decision = {};

  /// Draws from the predicted distribution, [samples, B, positions..., width], scaled like
  /// `values`: the first of each row and position belong together, and so on. Undefined where none
  /// were asked for.
  at::Tensor samples = {};

  /// How uncertain the prediction is, and why. Aleatoric: noise in the data, which further training
  /// rows do not remove; epistemic: the disagreement of models, which further rows do remove.
  ///
  /// Classes, distributions and labels: entropies in nats, [B, positions...], of labels
  /// [B, positions..., C]; total = aleatoric + epistemic. Numbers: standard deviations, shaped and
  /// scaled like `values`; total^2 = aleatoric^2 + epistemic^2. Undefined where unknown: one model
  /// has no epistemic part, and without a predicted distribution numbers have no aleatoric one. All
  /// undefined where none were requested.
  struct Uncertainty {
    at::Tensor total = {};
    at::Tensor aleatoric = {};
    at::Tensor epistemic = {};
  };
  Uncertainty uncertainty = {};

  /// Of rows that output stages learn from (OutputStage::needs_folds()): the fold whose model
  /// predicted each of them, int64 [B], from 0. Undefined elsewhere.
  at::Tensor fold_numbers = {};
  /// Predictions by the model of each fold for these rows, [folds, B, positions..., width], each in
  /// the data's units by its own transforms. Undefined where no output stage needs it.
  at::Tensor folds = {};
};

/// The decision, where there is one, else the likeliest class (the first of equals), or the labels
/// above one half. Expects probabilities; those of a distribution are decided like those of
/// classes.
at::Tensor decided(const Prediction& prediction);

/// Calls `visit(tensor, dimension)` for each tensor that a prediction has, with the dimension of
/// its rows. In one order for predictions with the same tensors.
template <typename AnyPrediction, typename Visit>
void for_each_tensor(AnyPrediction& prediction, Visit&& visit) {
  const auto visit_defined = [&](auto& tensor, std::int64_t rows) {
    if (tensor.defined())
      visit(tensor, rows);
  };
  visit_defined(prediction.values, 0);
  visit_defined(prediction.logits, 0);
  visit_defined(prediction.decision, 0);
  for (auto& extra : prediction.extras)
    visit_defined(extra.values, 0);
  visit_defined(prediction.crossed, 0);
  visit_defined(prediction.samples, 1);
  visit_defined(prediction.uncertainty.total, 0);
  visit_defined(prediction.uncertainty.aleatoric, 0);
  visit_defined(prediction.uncertainty.epistemic, 0);
  visit_defined(prediction.fold_numbers, 0);
  visit_defined(prediction.folds, 1);
}

/// Adds those for more rows (dimension 0), or for more positions of the same rows (1: the first of
/// their dimensions). Expects the same tensors in both.
void append(Prediction& to, const Prediction& more, std::int64_t dimension = 0);

/// One per target of the data, in their order.
using Predictions = std::vector<Prediction>;

}  // namespace treadle

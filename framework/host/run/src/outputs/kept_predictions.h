#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include <treadle/core/data/batch.h>
#include <treadle/core/validation/predictions.h>

#include "evaluation/metric.h"

namespace treadle::internal {

/// Predictions of a model for rows that it was not trained on, with their targets as the data has
/// them, in the order of the rows.
struct KeptPredictions {
  Predictions predictions;
  Batch rows;  ///< numbers, groups, targets and weights; no inputs
};

/// Those that a fit's metrics have collected (CollectedPredictions), of all targets. Nothing where
/// they have none.
std::optional<KeptPredictions> kept_in(std::span<const Metric> metrics);

/// Gives parts the same tensors, where output stages have changed some of them alone: extras that a
/// part lacks are NaN, its decision is the likeliest, and logits that one lacks go.
void align(std::span<KeptPredictions> parts);

/// All in one. Expects at least one part, and all of the same targets and tensors.
KeptPredictions joined(std::span<const KeptPredictions> parts);

/// Those for rows whose numbers are not among `others`.
KeptPredictions without(const KeptPredictions& kept, const at::Tensor& others);

}  // namespace treadle::internal

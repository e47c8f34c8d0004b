#pragma once

#include <memory>
#include <span>

#include <treadle/core/validation/predictions.h>
#include <treadle/engine/evaluation.h>
#include <treadle/host/run/predictor.h>

#include "model/prediction_pool.h"
#include "predict/restored_model.h"

namespace treadle::internal {

/// Throws a UsageError unless the model, or the ensemble that predicts in its place, tells the
/// uncertainty that is requested.
void expect_uncertainty(const UncertaintyOptions& uncertainty, const SampleOptions& samples,
                        const RestoredModel& model, bool is_ensemble);

/// The passes of Monte Carlo dropout; null where none are requested.
std::unique_ptr<engine::DropoutRequest> request_of(const UncertaintyOptions& uncertainty);

/// The requests for one call of a predictor, as the engine takes them.
struct Requests {
  Requests(const SampleOptions& samples, const UncertaintyOptions& uncertainty);

  std::unique_ptr<engine::DrawRequest> samples;
  std::unique_ptr<engine::DropoutRequest> dropout;
  bool uncertainty;

  FurtherPredictions further() const { return {samples.get(), dropout.get(), uncertainty}; }
};

/// Of an ensemble, whose members' shares are the weights of its pool, divided by their sum; equal
/// ones for a number or label for which all are 0. That of a logarithmic pool is that of the mean
/// with these shares, too.
Prediction::Uncertainty pooled_uncertainty(const PredictionPool& pool,
                                           std::span<const Prediction> members);

}  // namespace treadle::internal

#pragma once

#include <memory>

#include <treadle/engine/evaluation.h>
#include <treadle/host/run/predictor.h>

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

}  // namespace treadle::internal

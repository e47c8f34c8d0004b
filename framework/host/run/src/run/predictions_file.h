#pragma once

#include <string>
#include <vector>

#include <treadle/host/run/runtime.h>

#include "components/document_components.h"
#include "outputs/kept_predictions.h"

namespace treadle::internal {

/// Predictions of the model of a fold for the rows that measure it.
struct FoldPredictions {
  std::string fold;
  KeptPredictions kept;
};

/// Writes them fold after fold: `row` (of the data), `fold`, the target ("actual"), and predictions
/// as Predictor::predict_file() has them. `output`: as write_table() takes it.
void write_predictions_file(const Runtime& runtime, const std::string& output,
                            const DocumentComponents& components,
                            const std::vector<FoldPredictions>& folds);

}  // namespace treadle::internal

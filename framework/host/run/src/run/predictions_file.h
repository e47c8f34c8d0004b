#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "components/document_components.h"
#include "outputs/kept_predictions.h"

namespace treadle::internal {

/// Predictions of the model of a fold for the rows that measure it.
struct FoldPredictions {
  std::string fold;
  KeptPredictions kept;
};

/// Writes them as CSV, fold after fold: `row` (of the data), `fold`, the target ("actual"),
/// and predictions as Predictor::predict_file() has them.
void write_predictions_file(const std::filesystem::path& file, const DocumentComponents& components,
                            const std::vector<FoldPredictions>& folds);

}  // namespace treadle::internal

#pragma once

#include <exception>

#include <treadle/core/data/batch.h>
#include <treadle/core/model/model.h>
#include <treadle/core/training/objective.h>
#include <treadle/core/validation/predictions.h>

namespace treadle::engine {

/// A batch and its results.
struct EvaluatedBatch {
  Batch batch;
  Outputs outputs;  ///< only where a loss needs those of all rows, or samples are drawn of them
  Predictions predictions;
  BatchLoss loss;
  std::exception_ptr error;
};

}  // namespace treadle::engine

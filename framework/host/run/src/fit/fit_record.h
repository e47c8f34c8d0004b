#pragma once

#include <treadle/host/record/fit_result.h>

#include "components/document_components.h"
#include "fit/fit.h"

/// The parts of result.json that describe the model and the rows of a fit.
namespace treadle::internal {

FitRowCounts row_counts(const FitRows& rows, bool is_stream);

ModelInfo model_info(const DocumentComponents& components, Fit& fit);

/// Throws a DataError for a model that does not count.
ForwardCostResult forward_cost_of(const DocumentComponents& components, const ModelSpec& spec);

}  // namespace treadle::internal

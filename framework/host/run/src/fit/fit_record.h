#pragma once

#include <nlohmann/json.hpp>

#include "components/document_components.h"
#include "fit/fit.h"

/// The parts of result.json that describe the model and the rows of a fit.
namespace treadle::internal {

/// The rows of a fit: how many are "training" (null of a stream, which may have no end),
/// "validation" and "test", and "validation_hash" and "test_hash" of their numbers, null of none:
/// of the same data, the same rows have the same hash.
nlohmann::json rows_record(const FitRows& rows, bool is_stream);

/// name, version, architecture, parameter_count, input_shape, output_shape.
nlohmann::json model_info(const DocumentComponents& components, Fit& fit);

/// The "operations", "bytes" and "calls" of a forward pass of one row. Throws a DataError for a
/// model that does not count.
nlohmann::json forward_cost_record(const DocumentComponents& components, const ModelSpec& spec);

}  // namespace treadle::internal

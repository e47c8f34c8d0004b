#pragma once

#include <string>
#include <vector>

#include "components/document_components.h"
#include "data/evaluated_rows.h"
#include "evaluation/metric.h"

/// The metrics that a document asks for, and those of the report: fresh objects, one set a fit.
namespace treadle::internal {

/// The document's: each for the target it names, or for every target it works on.
std::vector<Metric> make_metrics(const DocumentComponents& components);

/// The report's metrics beside them (confusion matrix, residuals), as far as plugins offer them and
/// such targets allow them.
std::vector<Metric> make_report_metrics(const DocumentComponents& components);
/// A CollectedPredictions for each target. Throws a DataError where a target has a varying length.
std::vector<Metric> make_collecting_metrics(const DocumentComponents& components);
/// Sentences on those that cannot be had.
std::vector<std::string> missing_report_metrics(const DocumentComponents& components);

/// The document's metrics by step and by series, and some forecasts, as far as `data` has them:
/// they are made for its rows, and borrow from it and from `components`.
std::vector<Metric> make_breakdowns(const DocumentComponents& components,
                                    const EvaluatedRows& data);

}  // namespace treadle::internal

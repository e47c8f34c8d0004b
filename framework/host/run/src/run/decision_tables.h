#pragma once

#include <vector>

#include <treadle/host/record/fit_result.h>

#include "components/document_components.h"
#include "outputs/kept_predictions.h"

namespace treadle::internal {

/// Tables of the report for those who decide by predicted classes: ROC, precision-recall and lift
/// curves, reliability, scores by class, thresholds with the costs of the document's decision. As
/// far as plugins offer them and targets allow them; none for targets of more than 20 classes, or
/// of several positions a row.
std::vector<ResultTable> decision_tables(const DocumentComponents& components,
                                         const KeptPredictions& kept);

}  // namespace treadle::internal

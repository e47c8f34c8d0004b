#pragma once

#include <treadle/core/validation/cross_validator.h>
#include <treadle/host/catalog/workflow_document.h>

#include "outputs/output_stages.h"

namespace treadle::internal {

/// Sets training rows of the only fold aside, for output stages to learn from: `outputs.fraction`
/// of them, whole groups where the data has groups, the latest where it has times or the rows are
/// samples of a series, else of each class its share. Samples that touch what they predict are left
/// out of the training. Nothing is set aside where there are several folds, whose predictions for
/// each other's rows serve, or where the document has no outputs.
void set_rows_aside_for_outputs(const ResolvedWorkflow& workflow, const SplitRequest& request,
                                ValidationPlan& plan);

/// Throws a DataError unless the plan has what stages need that predict with the models of folds:
/// two or more folds whose evaluated rows are those of a final training, each once, and no search.
/// Expects such stages.
void expect_folds_for_outputs(const ResolvedWorkflow& workflow, const OutputStages& stages,
                              const SplitRequest& request, const ValidationPlan& plan);

/// Throws the DataError of a stage that would have too few rows to learn from: of the run's model
/// those set aside, or the validation rows of all folds. Expects a plan with rows set aside.
void expect_rows_for_outputs(const OutputStages& stages, const SplitRequest& request,
                             const ValidationPlan& plan);

}  // namespace treadle::internal

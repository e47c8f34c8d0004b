#pragma once

#include <treadle/host/run/report.h>

#include "report/blocks.h"
#include "report/numbers.h"
#include "report/search_record.h"

/// The sections of a report. Each is a block or, where the name is plural, a list of blocks; null
/// or empty where the run has nothing to show there.
namespace treadle::report {

/// The numbers in large type.
Json headline(const RunResult& result, const Numbers& numbers);
/// All numbers with one column per fold; of a single training beside the model.
Json result_section(const ReportInput& input, const Numbers& numbers);
/// The output stages behind the model, and the metrics without them; null where it has none.
Json outputs(const RunResult& result, const Numbers& numbers);
/// The models to compare with, on the same rows.
Json baselines(const RunResult& result, const Numbers& numbers);

/// Name, size and shapes of the model, and which of its weights were kept.
Json model_card(const RunResult& result);
/// The picture of a flow and the table of its nodes.
Json model_parts(const ModelDrawing& model);
/// The folds on an axis of time; null for a run with one fold, and where parts are scattered.
Json folds_in_time(const Json& plan);

/// Every training by epoch: columns, and rows by training; null without epochs.
Json epochs_of(const ReportInput& input, const Numbers& numbers);
/// The charts of the curves and the table of the epochs, which show epochs_of().
List curves(const Json& epochs, const Numbers& numbers);

/// When the training got how far; null without validation rows.
Json milestones(const RunResult& result);

/// Confusion matrices, numbers by class, forecasts, residuals, and any table that a metric of a
/// plugin added.
List result_tables(const RunResult& result, const Numbers& numbers);

/// Why the model predicts what it predicts, as explain.json has it: importances, SHAP values,
/// partial dependence, subgroups and rows; empty for null.
List reasons_section(const Json& reasons);

/// The choices that Treadle made, the place the run was made in, the resolved document.
List background(const ReportInput& input);

/// The overview and the best values of a search, and the block that shows search_data().
List search_section(const SearchRecord& search);
/// The trials of a search with importances and curves. Numbers are in the document's own direction:
/// a maximized metric is not negated.
Json search_data(const SearchRecord& search, const ReportInput& input);

}  // namespace treadle::report

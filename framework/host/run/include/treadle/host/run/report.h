#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/host/record/run_result.h>
#include <treadle/host/record/training_curve.h>
#include <treadle/host/run/model_drawing.h>

namespace treadle {

/// The input of a report. Everything is data: rendering needs no run folder and no libtorch.
struct ReportInput {
  std::string name;
  RunResult result;
  nlohmann::json document;  ///< resolved
  std::vector<TrainingCurve> curves;
  ModelDrawing model;           ///< empty where nothing is known of the model's parts
  nlohmann::json reasons = {};  ///< as explain.json has them; null: the run does not explain
};

/// The content of a report as data: "title", "kind", "version", "subtitle", "blocks" and, where the
/// run has them, "epochs" and "search". src/report/blocks.h describes the blocks. Numbers are raw;
/// NaN and infinity become null when the document is written.
nlohmann::json report_document(const ReportInput& input);

/// The page that shows this document, one self-contained HTML file: curves, metric table, the
/// trials of a search, confusion matrix or residuals, configuration; light and dark. Its scripts,
/// Chart.js among them, are inside; it loads nothing from anywhere.
std::string render_report(const ReportInput& input);

}  // namespace treadle

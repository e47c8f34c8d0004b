#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/host/record/training_curve.h>
#include <treadle/host/run/model_drawing.h>

namespace treadle {

/// What a report shows. Everything is data: rendering needs no run folder and no libtorch.
struct ReportInput {
  std::string name;
  nlohmann::json result;    ///< as result.json, see docs/guide/results.md
  nlohmann::json document;  ///< resolved
  std::vector<TrainingCurve> curves;
  ModelDrawing model;  ///< empty where nothing is known of the model's parts
};

/// One self-contained HTML file: curves, metric table, the trials of a search, confusion matrix or
/// residuals, configuration; light and dark. Chart.js is inside; it loads nothing from anywhere.
/// Everything that came from the document or the data is escaped.
std::string render_report(const ReportInput& input);

}  // namespace treadle

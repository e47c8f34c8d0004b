#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/core/run_observer.h>

namespace treadle {

/// A model's parts for the report, provided by a caller that knows the model's type.
struct ModelDrawing {
  /// A table: its head, then a row for each part. Indentation of the first cell shows nesting.
  std::vector<std::vector<std::string>> parts;
  std::string svg;  ///< a picture, or empty
};

/// What a report shows. Everything is data: rendering needs no run folder and no libtorch.
struct ReportInput {
  std::string name;
  nlohmann::json result;    ///< as result.json, see docs/guide/results.md
  nlohmann::json document;  ///< resolved
  struct Curve {
    std::string fit;  ///< "final", "fold-1"; of a search also "trials/7" and "trials/7/fold-1"
    std::vector<EpochSummary> epochs;
  };
  std::vector<Curve> curves;
  ModelDrawing model;  ///< empty where nothing is known of the model's parts
};

/// One self-contained HTML file: curves, metric table, the trials of a search, confusion matrix or
/// residuals, configuration; light and dark. Chart.js is inside; it loads nothing from anywhere.
/// Everything that came from the document or the data is escaped.
std::string render_report(const ReportInput& input);

}  // namespace treadle

#pragma once

#include <string>
#include <string_view>

#include <treadle/host/run/report.h>

/// The parts of a report, each complete HTML and empty when the run has nothing to say there.
namespace treadle::report {

/// Name and date line, without markup around it.
std::string subtitle(const ReportInput& input);
/// The numbers in large type.
std::string headline(const ReportInput& input);
/// All numbers, beside what the model is; for a cross-validation mean, deviation and one column per
/// fold.
std::string metric_table(const ReportInput& input);
/// The models to compare with, on the same rows; empty without any.
std::string baseline_table(const ReportInput& input);
/// The frames the script draws curves in, and the history as a table.
std::string curves(const ReportInput& input);
/// Confusion matrix, numbers by class, residuals, and any table a metric from elsewhere brought
/// along.
std::string result_tables(const ReportInput& input);
/// What Treadle decided, the resolved document, the place it ran in.
std::string background(const ReportInput& input);

/// A table of the result, and the target it is about; empty where there is only one.
struct TargetTable {
  std::string target;
  const nlohmann::json* table;
};
/// The result's tables of this name that are not empty, one for each target: "residual_sample", or
/// "price/residual_sample" and "area/residual_sample".
std::vector<TargetTable> find_tables(const ReportInput& input, std::string_view name);
/// Of a list of tables.
std::vector<TargetTable> find_tables_in(const nlohmann::json& tables, std::string_view name);

/// What the script needs.
nlohmann::json chart_data(const ReportInput& input);

}  // namespace treadle::report

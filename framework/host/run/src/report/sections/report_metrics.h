#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <treadle/host/run/report.h>

/// The metrics of a run for the report; HTML where text is returned.
namespace treadle::report {

/// The rows that the result's numbers are of, those of the test of the run's model aside: "test"
/// where folds are tested, "validation", or "training" without any.
std::string_view judged_by(const ReportInput& input);
bool is_cross_validation(const ReportInput& input);

/// The metrics of a run: those of the document in its order, then those that only curves have, then
/// others by name.
std::vector<std::string> metric_names(const ReportInput& input);

/// "recall.setosa" belongs into the table by class.
bool is_of_one_class(std::string_view name);

/// What the test rows came to; null without any.
const nlohmann::json& test_of(const ReportInput& input);

/// The rows that chose the weights and the rows that measure the model, as sentences; empty where
/// no rows chose.
std::string evaluation_note(const ReportInput& input);

std::string mean_and_deviation(const nlohmann::json& mean, const nlohmann::json& deviation);
std::string metric_value(const ReportInput& input, const std::string& name);

}  // namespace treadle::report

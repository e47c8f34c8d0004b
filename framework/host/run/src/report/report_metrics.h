#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <treadle/host/run/report.h>

/// Which numbers a run is judged by, and what they are; HTML where text is returned.
namespace treadle::report {

bool is_cross_validation(const ReportInput& input);

/// The numbers by which a run is judged: the document's metrics in its order, then those that
/// only curves have, then others by name.
std::vector<std::string> metric_names(const ReportInput& input);

/// "recall.setosa" belongs into the table by class.
bool is_of_one_class(std::string_view name);

/// What the test rows came to; null without any.
const nlohmann::json& test_of(const ReportInput& input);

/// Which rows chose and which judge, as a sentence; empty where there is nothing to tell apart.
std::string judging_note(const ReportInput& input);

std::string mean_and_deviation(const nlohmann::json& mean, const nlohmann::json& deviation);
std::string judged_metric(const ReportInput& input, const std::string& name);

}  // namespace treadle::report

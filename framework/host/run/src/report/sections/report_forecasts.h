#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/host/run/report.h>

/// Forecasts of series: some of them drawn with their intervals, and the metrics by step of the
/// horizon and by series. Of the test rows, where there are any.
namespace treadle::report {

/// The frames the script draws in, and the table by series; empty without forecasts or series.
std::string forecasts(const ReportInput& input);

/// The tables of `input` that forecasts() shows, so that they are not listed again.
std::vector<const nlohmann::json*> forecast_tables(const ReportInput& input);

/// What the script draws: "forecasts" (each with its numbers, each of these with its steps) and
/// "by_step".
nlohmann::json forecast_data(const ReportInput& input);

}  // namespace treadle::report

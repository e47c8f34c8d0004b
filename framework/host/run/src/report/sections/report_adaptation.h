#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include <treadle/host/run/report.h>

/// How a model that went on learning followed its task: its numbers window by window with the
/// changes of the task, what came before and after each of these, and how stable it was.
namespace treadle::report {

/// The frame the script draws the timeline in, and two tables; empty unless each batch was tested
/// before it was trained on.
std::string adaptation(const ReportInput& input);

/// What the script draws: "adaptation" with "ends" (the first row of each window, and the end of
/// the last), "numbers" (each with one value a window) and "changes".
nlohmann::json adaptation_data(const ReportInput& input);

}  // namespace treadle::report

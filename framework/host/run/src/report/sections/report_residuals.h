#pragma once

#include <string>

#include <treadle/host/run/report.h>

/// How far off a regression is, output by output.
namespace treadle::report {

/// One section: a chooser where the target has several numbers, the charts, and the error of each.
std::string residuals(const ReportInput& input);

/// What the script draws: for each output its name, a bounded sample and its histogram; an empty
/// list for anything but a regression.
nlohmann::json residual_data(const ReportInput& input);

}  // namespace treadle::report

#pragma once

#include <string>

#include <treadle/host/run/report.h>

namespace treadle::report {

/// The section on the data: rows, columns with types and missing values, the balance of classes or
/// the range of numbers; empty where the result has none of it.
std::string data_section(const ReportInput& input);

}  // namespace treadle::report

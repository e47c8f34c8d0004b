#pragma once

#include <string>

#include <treadle/host/run/report.h>

namespace treadle::report {

/// What a search of the model's structure chose, place by place; empty where none was searched.
std::string structures(const ReportInput& input);

}  // namespace treadle::report

#pragma once

#include <string>

#include <treadle/host/run/report.h>

namespace treadle::report {

/// The folds on an axis of time, one line each, as a picture; empty for a run with one fold, and
/// where parts are scattered over time.
std::string folds_card(const ReportInput& input);

}  // namespace treadle::report

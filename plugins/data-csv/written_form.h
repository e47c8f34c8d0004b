#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "csv_options.h"

namespace treadle::csv {

/// The options with the separator, the header line and the notation of numbers that the first rows
/// of the first file show, where they leave no doubt; those that differ from `options` are put into
/// `parameters`, as a document has them.
CsvOptions as_written(CsvOptions options, const std::vector<std::string>& missing_values,
                      nlohmann::json& parameters);

/// The format of the dates in the first rows, "%d.%m.%Y": the one in which all columns that have
/// dates are written. Empty for ISO 8601, and where two formats fit, such as %d/%m/%Y and %m/%d/%Y.
std::string written_date_format(const CsvOptions& options,
                                const std::vector<std::string>& missing_values);

}  // namespace treadle::csv

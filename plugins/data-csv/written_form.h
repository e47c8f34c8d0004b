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

}  // namespace treadle::csv

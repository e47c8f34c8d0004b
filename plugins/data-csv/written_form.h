#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "csv_options.h"

namespace treadle::csv {

/// The options with the separator and the header that the file's first rows show, where they leave
/// no doubt; values that differ from `options` go to `parameters`, as a document has them.
CsvOptions as_written(CsvOptions options, const std::vector<std::string>& missing_values,
                      nlohmann::json& parameters);

}  // namespace treadle::csv

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <treadle/base/config.h>

#include "number_notation.h"

namespace treadle::csv {

/// The parameters of `csv` that say how the files are written: csv.schema.json without those of all
/// tables.
struct CsvOptions {
  CsvOptions() = default;
  explicit CsvOptions(const Config& config);

  std::vector<std::string> paths;  ///< or patterns: table::find_files()
  bool header = true;
  std::int64_t skip_rows = 0;
  char separator = ',';
  char quote = '"';  ///< 0: none
  std::string encoding = "utf-8";
  NumberNotation numbers;
};

}  // namespace treadle::csv

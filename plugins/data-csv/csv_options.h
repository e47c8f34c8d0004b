#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <treadle/base/config.h>

namespace treadle::csv {

/// The parameters of `csv` that say how the file is written: csv.schema.json without those of all
/// tables.
struct CsvOptions {
  CsvOptions() = default;
  explicit CsvOptions(const Config& config);

  std::filesystem::path path;
  bool header = true;
  std::int64_t skip_rows = 0;
  char separator = ',';
  char quote = '"';  ///< 0: none
};

}  // namespace treadle::csv

#pragma once

#include <treadle/core/data/abilities/table_profile.h>

#include "csv_options.h"

namespace treadle::csv {

/// Reads the whole file once and counts what is in each column. Of the options only those count
/// that say how the file is written; another separator, and rows without a header line, are found
/// where the first rows leave no doubt. Memory: the different texts of a column, up to 65536, and
/// those of a column of numbers up to 1024.
///
/// Throws DataError where the file is no table: it is empty, or a row has another number of fields.
TableProfile profile_file(const CsvOptions& options);

}  // namespace treadle::csv

#pragma once

#include <optional>

#include <treadle/core/data_provider.h>
#include <treadle/core/matrix_rows.h>

#include "csv_options.h"
#include "table_layout.h"

namespace treadle::csv {

struct Table {
  TableDescription description;
  MatrixRows::Matrices matrices;
};

/// Reads the file. With `known`, the description of the training file, columns, classes and
/// categories are those; without, they are found out. Values go straight from the text into one
/// row-major matrix of the run's dtype.
///
/// Throws DataError: one sentence for what makes reading pointless; up to five rows that cannot be
/// understood, "FILE:LINE: …" each, and how many more there are.
Table read_table(const CsvOptions& options, const OpenRequest& request,
                 const std::optional<TableDescription>& known);

}  // namespace treadle::csv

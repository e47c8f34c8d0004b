#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <treadle/core/data/data_provider.h>
#include <treadle/core/data/matrix_rows.h>

#include "csv_options.h"
#include "line_index.h"
#include "table_layout.h"

namespace treadle::csv {

struct Table {
  TableDescription description;
  MatrixRows::Matrices matrices;
  std::shared_ptr<const LineIndex> lines;  ///< where each row starts
  at::Tensor utc_offsets;                  ///< LocalTimes
  std::vector<std::string> group_names;    ///< by number; those of the description come first
};

/// Reads the file. With `known`, the description of the training file, columns, classes and
/// categories are those; without, they are found out. Values go straight from the text into one
/// row-major matrix of the run's dtype.
///
/// Throws DataError: one sentence for what makes reading pointless; up to five rows that cannot be
/// understood, "FILE:LINE: …" each, and how many more there are.
Table read_table(const CsvOptions& options, const OpenRequest& request,
                 const std::optional<TableDescription>& known);

/// The fields of the columns `names`, a list for each, of the rows that were read from the file
/// before. Throws DataError for a name that is not in it, or is in it twice.
std::vector<std::vector<std::string>> read_texts(const CsvOptions& options, const LineIndex& rows,
                                                 const std::vector<std::string>& names);

}  // namespace treadle::csv

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <treadle/core/data/data_provider.h>
#include <treadle/core/data/matrix_rows.h>

#include <treadle/table/table_options.h>
#include <treadle/table/table_source.h>

#include "table_layout.h"
#include "table_rows.h"
#include "values/parsed_rows.h"

namespace treadle::table {

/// Rows as tensors, and their description.
struct Table {
  TableDescription description;
  MatrixRows::Matrices matrices;  ///< without describe_row
  std::shared_ptr<const RowPositions> positions;
  at::Tensor utc_offsets;                ///< LocalTimes
  std::vector<std::string> group_names;  ///< by number; those of the description come first
};

/// The decisions about a source that come before its rows. Borrows everything it is given, as does
/// the plan it gives.
class TableReading {
 public:
  /// With `known`, the description of the training data, columns, classes and categories are those;
  /// null: they are found out. Throws DataError where a column is missing.
  TableReading(TableSource& source, const TableOptions& options, const OpenRequest& request,
               const TableDescription* known);

  RowPlan plan() const { return {options_, request_, layout_, fields_, known_}; }
  const TableLayout& layout() const { return layout_; }
  /// Tensors of the rows that a TableRows with plan() has read. Throws DataError where they are no
  /// data: no row, or one class only.
  Table finish(ParsedRows rows) const;
  /// As finish(), for a table whose `rows` rows went away piece by piece: its description and spec,
  /// without a row. `last` has the dictionaries.
  Table describe(ParsedRows last, std::int64_t rows) const;

 private:
  TableSource& source_;
  const TableOptions& options_;
  const OpenRequest& request_;
  const TableDescription* known_;
  TableLayout layout_;
  FieldPlan fields_;
};

/// Reads the whole source. Values go from the source into one row-major matrix per port, float32 or
/// float64, without being copied again.
///
/// Throws DataError: one sentence for what makes reading pointless; up to five rows that cannot be
/// understood, each with its place, and how many more there are.
Table read_table(TableSource& source, const TableOptions& options, const OpenRequest& request,
                 const TableDescription* known);

}  // namespace treadle::table

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <treadle/core/data/data_provider.h>

#include "csv_options.h"
#include "csv_scanner.h"
#include "growing_buffer.h"
#include "label_dictionary.h"
#include "line_index.h"
#include "number_buffer.h"
#include "table_layout.h"

namespace treadle::csv {

/// The rows of a file, every value in its place. Classes and categories have the numbers of their
/// dictionaries, which count in the order of appearance unless they were given.
struct ParsedRows {
  /// Of one port or target: rows of `width` values; no rows when there are none.
  template <typename Values>
  struct Part {
    std::size_t width = 0;
    Values values;
  };
  using Numbers = Part<NumberBuffer>;
  using Indices = Part<GrowingBuffer<std::int64_t>>;

  std::int64_t rows = 0;
  std::int64_t dropped = 0;              ///< left out because a value was missing
  std::vector<Numbers> numbers;          ///< one per port
  std::vector<Indices> categories;       ///< likewise
  std::vector<TargetKind> target_kinds;  ///< one per target
  std::vector<Numbers> target_numbers;   ///< likewise, for all kinds but classes
  std::vector<Indices> target_classes;
  std::vector<LabelDictionary> classes;
  NumberBuffer weights;
  GrowingBuffer<std::int64_t> groups;
  LabelDictionary group_names;
  GrowingBuffer<double> times;
  GrowingBuffer<double> utc_offsets;  ///< of times; empty: 0 each
  GrowingBuffer<double> label_ends;
  bool times_are_dates = false;
  std::vector<LabelDictionary> labels;  ///< one per feature; empty for numbers
  std::vector<char> has_missing;        ///< per feature
  std::vector<std::size_t> places;      ///< of each feature in its port's numbers or categories
  std::shared_ptr<LineIndex> lines = std::make_shared<LineIndex>();
};

/// How to read the rows: everything is borrowed for the call.
struct RowPlan {
  const CsvOptions& options;
  const OpenRequest& request;
  const TableLayout& layout;
  const FieldPlan& fields;
  const std::optional<TableDescription>& known;
};

/// Reads all rows from where the scanner stands. Throws DataError with the first rows that cannot
/// be understood and the number of the others.
ParsedRows parse_rows(CsvScanner& scanner, const RowPlan& plan);

}  // namespace treadle::csv

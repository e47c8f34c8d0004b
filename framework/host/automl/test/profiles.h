#pragma once

#include <string>
#include <utility>
#include <vector>

#include <treadle/core/data/abilities/table_profile.h>

/// Columns as a data component describes them, of 100 rows each.
namespace treadle::automl {

inline constexpr std::int64_t kRows = 100;

inline TableProfile table_of(std::vector<ColumnProfile> columns) {
  TableProfile table;
  table.rows = kRows;
  table.columns = std::move(columns);
  table.missing_values = {"", "NA"};
  return table;
}

inline ColumnProfile number_column(std::string name) {
  ColumnProfile column;
  column.name = std::move(name);
  column.numbers = kRows;
  column.least = 0.5;
  column.greatest = 99.5;
  column.distinct = kRows;
  column.rarest = 1;
  return column;
}

/// Texts "t0", "t1" …, in equally many rows.
inline ColumnProfile text_column(std::string name, std::int64_t levels) {
  ColumnProfile column;
  column.name = std::move(name);
  column.distinct = levels;
  column.rarest = kRows / levels;
  for (std::int64_t i = 0; i < levels && i < 20; ++i)
    column.odd_texts.push_back({"t" + std::to_string(i), kRows / levels});
  column.frequent = column.odd_texts;
  return column;
}

inline ColumnProfile date_column(std::string name, std::int64_t times) {
  ColumnProfile column;
  column.name = std::move(name);
  column.dates = kRows;
  column.times = times;
  column.distinct = kRows;
  column.rarest = 1;
  return column;
}

}  // namespace treadle::automl

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include <treadle/base/error.h>

#include "parquet_file.h"
#include "targets.h"

namespace treadle::fuzz {
namespace {

using parquet::ColumnValues;
using parquet::MemorySource;
using parquet::ParquetFile;
using parquet::RowsReader;

// Runs may be of any length: a page of a few bytes has millions of equal values, which is no
// mistake.
constexpr std::size_t kMostRows = 20'000;

// The bytes of values, as NaN differs from itself.
std::string bytes_of(const ColumnValues& column, std::size_t row) {
  if (column.is_null(row))
    return "null";
  return std::visit(
      [row](const auto& values) {
        using Value = typename std::decay_t<decltype(values)>::value_type;
        if constexpr (std::is_same_v<Value, std::string_view>)
          return "text " + std::string(values[row]);
        else
          return std::string(reinterpret_cast<const char*>(&values[row]), sizeof(Value));
      },
      column.values);
}

std::vector<std::string> read_rows(const ParquetFile& file, const std::vector<std::size_t>& columns,
                                   std::size_t step) {
  std::vector<std::string> seen;
  try {
    RowsReader reader(file, columns);
    while (seen.size() < kMostRows * columns.size()) {
      const std::size_t rows = reader.read(step);
      if (rows == 0)
        break;
      for (std::size_t row = 0; row < rows; ++row) {
        for (const ColumnValues& column : reader.values())
          seen.push_back(bytes_of(column, row));
      }
    }
  } catch (const DataError& error) {
    promise_readable(error.what(), 1000);
  }
  return seen;
}

void read_file(std::string_view bytes) {
  const ParquetFile file(std::make_unique<MemorySource>(bytes), "x.parquet");
  std::vector<std::size_t> columns;
  for (std::size_t i = 0; i < file.columns().size() && columns.size() < 20; ++i) {
    if (file.columns()[i].refusal.empty()) {
      columns.push_back(i);
    } else {
      promise_readable(file.columns()[i].refusal, 300);
    }
  }
  if (columns.empty())
    return;
  const std::vector<std::string> seen = read_rows(file, columns, 1000);
  const std::vector<std::string> again = read_rows(file, columns, 7);
  // An error may come within a step; the rows before it are the same.
  const std::size_t both = std::min(seen.size(), again.size());
  promise(std::equal(seen.begin(), seen.begin() + static_cast<std::ptrdiff_t>(both), again.begin()),
          "a file has the same values for any number of rows read at once");
}

}  // namespace

void parquet(std::string_view bytes) {
  try {
    read_file(bytes);
  } catch (const DataError& error) {
    promise_readable(error.what(), 1000);
  }
}

}  // namespace treadle::fuzz

#include <treadle/host/run/exported_table.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fstream>
#include <iterator>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <treadle/base/error.h>
#include <treadle/base/files/csv_records.h>
#include <treadle/base/json_words.h>
#include <treadle/core/data/table_writer.h>

#include "predict/table_output.h"

namespace treadle {
namespace {

/// Rows that are written at once.
constexpr std::size_t kRows = 4096;

using Fields = std::vector<std::string>;

/// A file as csv_field() wrote it, by column; the first field of each is its name.
std::vector<Fields> columns_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    throw StorageError(path.string() + ": is not there; a run has it once it is finished");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!text.ends_with('\n'))
    throw StorageError(path.string() + ": is damaged: its last line was cut off");
  const std::string shown = path.string();
  CsvRecords records(text, shown);
  std::vector<Fields> columns;
  Fields fields;
  try {
    while (records.next(fields)) {
      if (columns.empty())
        columns.resize(fields.size());
      if (fields.size() != columns.size()) {
        throw StorageError(shown + ":" + std::to_string(records.line()) +
                           ": is damaged: expected " + std::to_string(columns.size()) +
                           " fields, as in the first line, got " + std::to_string(fields.size()));
      }
      for (std::size_t i = 0; i < fields.size(); ++i)
        columns[i].push_back(std::move(fields[i]));
    }
  } catch (const DataError& error) {
    throw StorageError(std::string(error.what()) + "; the file is damaged");
  }
  if (columns.empty())
    throw StorageError(shown + ": is damaged: it has no line");
  return columns;
}

template <typename Number>
std::optional<Number> number_in(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() ? std::optional(value)
                                                                  : std::nullopt;
}

/// The fields behind the name as numbers; nothing where one is none.
template <typename Number>
std::optional<std::vector<Number>> numbers_in(const Fields& column) {
  std::vector<Number> numbers;
  numbers.reserve(column.size() - 1);
  for (std::size_t row = 1; row < column.size(); ++row) {
    std::optional<Number> number = number_in<Number>(column[row]);
    if (!number && std::is_floating_point_v<Number> && column[row].empty())
      number = static_cast<Number>(NAN);
    if (!number)
      return std::nullopt;
    numbers.push_back(*number);
  }
  return numbers;
}

TableWriter::Values values_of(const Fields& column) {
  if (auto integers = numbers_in<std::int64_t>(column))
    return std::move(*integers);
  if (auto numbers = numbers_in<double>(column))
    return std::move(*numbers);
  return std::vector<std::string>(column.begin() + 1, column.end());
}

TableWriter::Values part_of(const TableWriter::Values& values, std::size_t begin, std::size_t end) {
  return std::visit(
      [&](const auto& all) -> TableWriter::Values {
        using List = std::decay_t<decltype(all)>;
        return List(all.begin() + static_cast<std::ptrdiff_t>(begin),
                    all.begin() + static_cast<std::ptrdiff_t>(end));
      },
      values);
}

}  // namespace

std::int64_t export_table(const Runtime& runtime, const std::filesystem::path& run,
                          const std::string& table, const std::string& output) {
  constexpr std::array<std::string_view, 2> kTables{"history", "predictions"};
  if (std::find(kTables.begin(), kTables.end(), table) == kTables.end())
    throw UsageError("a run has the tables history and predictions, not " + quote_text(table));
  const std::vector<Fields> columns = columns_of(run / (table + ".csv"));
  std::vector<TableWriter::Column> described;
  std::vector<TableWriter::Values> values;
  for (const Fields& column : columns) {
    values.push_back(values_of(column));
    described.push_back(
        {column.front(), static_cast<TableWriter::Column::Type>(values.back().index())});
  }
  const std::size_t rows = columns.front().size() - 1;
  internal::write_table(runtime, output, [&](TableWriter& writer) {
    writer.open(std::move(described));
    for (std::size_t begin = 0; begin < rows; begin += kRows) {
      std::vector<TableWriter::Values> chunk;
      for (const TableWriter::Values& of_column : values)
        chunk.push_back(part_of(of_column, begin, std::min(begin + kRows, rows)));
      writer.write(chunk);
    }
    writer.close();
  });
  return static_cast<std::int64_t>(rows);
}

}  // namespace treadle

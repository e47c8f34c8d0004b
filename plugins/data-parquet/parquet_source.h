#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <treadle/table/source_files.h>
#include <treadle/table/table_source.h>

#include "parquet_file.h"

namespace treadle::parquet {

/// Reads a table from Parquet files, one after the other, column by column; only those that the
/// sink wants are read. A position is a row, from 1, and the index of its file.
///
/// Dates and timestamps are times, a time of day is seconds, a truth value 0 or 1.
class ParquetSource final : public table::TableSource {
 public:
  explicit ParquetSource(std::vector<std::string> paths) : files_(std::move(paths)) {}

 private:
  table::TableColumns do_open() override;
  bool do_read(table::RowSink& sink, std::int64_t rows) override;
  Bookmark do_bookmark() const override { return {position(), row_ + 1}; }
  void do_go_to(const Bookmark& place) override;
  std::string do_shown() const override { return files_.shown(); }
  std::string do_place_of(std::int64_t position) const override;
  std::string do_hash() const override { return files_.hash(); }

  // Values that a sink does not take as they are.
  struct Converted {
    std::vector<std::int64_t> counts;
    std::vector<double> numbers;
  };

  /// Goes to the first row of a file.
  void open_file(std::size_t file);
  std::int64_t position() const { return table::SourceFiles::position(file_index_, row_ + 1); }
  void read_columns_for(const table::RowSink& sink);
  table::ColumnChunk chunk_of(std::size_t column, const ColumnValues& values);

  table::SourceFiles files_;
  std::vector<std::string> names_;  // of the columns of the first
  std::size_t file_index_ = 0;      // of file_
  std::optional<ParquetFile> file_;
  std::vector<std::size_t> wanted_;  // columns that reader_ reads
  std::optional<RowsReader> reader_;
  std::vector<Converted> converted_;  // by column
  std::int64_t row_ = 0;              // read next, from 0
};

}  // namespace treadle::parquet

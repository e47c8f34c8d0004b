#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <treadle/table/table_source.h>

#include "parquet_file.h"

namespace treadle::parquet {

/// Reads a table from a Parquet file, column by column; only those that the sink wants are read.
/// Positions and offsets of bookmarks are rows from 1.
///
/// Dates and timestamps are times, a time of day is seconds, a truth value 0 or 1.
class ParquetSource final : public table::TableSource {
 public:
  explicit ParquetSource(std::filesystem::path path);

 private:
  table::TableColumns do_open() override;
  bool do_read(table::RowSink& sink, std::int64_t rows) override;
  Bookmark do_bookmark() const override { return {row_ + 1, row_ + 1}; }
  void do_go_to(const Bookmark& place) override;
  std::string do_shown() const override { return shown_; }
  std::string do_place_of(std::int64_t position) const override {
    return shown_ + ", row " + std::to_string(position);
  }
  std::string do_hash() const override;

  // Values that a sink does not take as they are.
  struct Converted {
    std::vector<std::int64_t> counts;
    std::vector<double> numbers;
  };

  void read_columns_for(const table::RowSink& sink);
  table::ColumnChunk chunk_of(std::size_t column, const ColumnValues& values);

  std::filesystem::path path_;
  std::string shown_;
  std::optional<ParquetFile> file_;
  std::vector<std::size_t> wanted_;  // columns that reader_ reads
  std::optional<RowsReader> reader_;
  std::vector<Converted> converted_;  // by column
  std::int64_t row_ = 0;              // read next, from 0
};

}  // namespace treadle::parquet

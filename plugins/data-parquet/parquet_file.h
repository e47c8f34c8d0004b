#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "byte_source.h"
#include "codec.h"
#include "column_reader.h"
#include "column_type.h"
#include "column_values.h"

namespace treadle::parquet {

/// A Parquet file: its columns and row groups, as the footer has them.
class ParquetFile {
 public:
  /// Reads the footer. `shown` is the file's name in messages. Throws DataError for
  /// another kind of file, a cut one and an encrypted one.
  ParquetFile(std::unique_ptr<ByteSource> source, std::string shown);

  const std::vector<Column>& columns() const { return columns_; }
  const std::vector<RowGroup>& row_groups() const { return metadata_.row_groups; }
  std::int64_t rows() const { return metadata_.rows; }
  const std::string& shown() const { return shown_; }
  const ByteSource& source() const { return *source_; }
  const std::string& created_by() const { return metadata_.created_by; }

 private:
  std::string read_footer_bytes() const;
  void check_row_groups(std::size_t leaves) const;

  std::unique_ptr<ByteSource> source_;
  std::string shown_;
  FileMetadata metadata_;
  std::vector<Column> columns_;
};

/// Reads some columns of a file, row by row group. In memory: a page and a dictionary per column.
/// One thread.
class RowsReader {
 public:
  /// `columns` are places in file.columns(). Borrows the file. Throws DataError for a column that
  /// cannot be read.
  RowsReader(const ParquetFile& file, const std::vector<std::size_t>& columns);

  /// Reads up to `most` rows, of one row group, and returns how many; 0 at the end. Values are
  /// valid until the next call. Throws DataError.
  std::size_t read(std::size_t most);
  /// For each column, what read() has read.
  std::span<const ColumnValues> values() const { return values_; }

  /// The number of the row that read() reads next, from 0.
  std::int64_t row() const { return row_; }
  /// Makes it `row`, at most rows(): earlier rows of its row group are decoded and passed over.
  void go_to(std::int64_t row);

 private:
  void begin_group();

  const ParquetFile& file_;
  Compressor compressor_;
  PageMemory memory_;
  std::vector<std::size_t> leaves_;  // of each column
  std::vector<std::unique_ptr<ColumnReader>> readers_;
  std::vector<ColumnValues> values_;
  std::size_t group_ = 0;
  std::size_t group_left_ = 0;
  bool is_begun_ = false;  // the group
  std::int64_t row_ = 0;
};

}  // namespace treadle::parquet

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <treadle/base/atomic_file.h>
#include <treadle/core/data/table_writer.h>

#include "codec.h"
#include "thrift.h"

namespace treadle::parquet {

/// Writes the bytes of a Parquet file: required columns, PLAIN, compressed by ZSTD, with checksums
/// and the least and greatest number of each column. Integers are INT64, floats FLOAT, doubles
/// DOUBLE, texts UTF-8.
///
/// Rows are kept until they are a row group: kGroupRows rows, or kGroupBytes bytes.
class FileEncoder {
 public:
  static constexpr std::size_t kGroupRows = 122'880;  // as DuckDB's
  static constexpr std::size_t kGroupBytes = std::size_t{64} << 20;
  static constexpr std::size_t kPageBytes = std::size_t{1} << 20;

  /// Borrows the writer.
  FileEncoder(FileWriter& out, std::vector<TableWriter::Column> columns);

  /// Adds rows; expects `chunk` as TableWriter::write() takes it.
  void add(const std::vector<TableWriter::Values>& chunk, std::size_t rows);
  /// Writes the last row group and the footer. No call comes after it.
  void finish();

 private:
  struct Chunk {
    std::int64_t offset = 0;
    std::int64_t size = 0;               // as stored, with headers
    std::int64_t uncompressed_size = 0;  // with headers
    std::string least;                   // PLAIN; empty: not known
    std::string greatest;
  };
  struct Group {
    std::vector<Chunk> chunks;
    std::int64_t rows = 0;
  };
  // The rows of one column that wait for their row group, in PLAIN.
  struct Pending {
    std::string bytes;
    // Where pages end: bytes and rows from the beginning.
    std::vector<std::pair<std::size_t, std::size_t>> pages;
  };

  void write(std::string_view bytes);
  void append(Pending& pending, const TableWriter::Values& values, std::size_t begin,
              std::size_t end);
  void write_group();
  void write_pages(const Pending& pending, Chunk& chunk);
  void write_schema(ThriftWriter& footer) const;
  void write_row_groups(ThriftWriter& footer) const;

  FileWriter& out_;
  std::vector<TableWriter::Column> columns_;
  Compressor compressor_;
  std::vector<Pending> pending_;
  std::vector<Group> groups_;
  std::size_t pending_rows_ = 0;
  std::int64_t offset_ = 0;
  std::int64_t rows_ = 0;
};

}  // namespace treadle::parquet

#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "bit_packing.h"
#include "column_type.h"
#include "column_values.h"
#include "page_stream.h"
#include "value_decoder.h"

namespace treadle::parquet {

/// Reads one column of a file, row group by row group, as many rows at a time as one likes. In
/// memory: a page and a dictionary. One thread.
class ColumnReader {
 public:
  /// Borrows all three. `shown` is the file's name in messages. Throws DataError for a column that
  /// cannot be read.
  ColumnReader(const ByteSource& source, Compressor& compressor, PageMemory& memory,
               const Column& column, std::string shown);

  /// Begins a row group, the number `group` of the file.
  void begin(const ColumnChunk& chunk, std::size_t rows, std::size_t group);
  /// Replaces what `out` holds by the next rows. Expects as many to be left in the row group.
  /// Throws DataError "FILE: column "x", row group 2, page 3: …".
  void read(ColumnValues& out, std::size_t rows);

 private:
  void next_page();
  std::size_t read_levels(std::uint8_t* valid, std::size_t count);
  template <typename Action>
  void with_place(const Action& action) const;

  const Column column_;
  const std::string shown_;
  PageStream pages_;
  std::unique_ptr<ValueDecoder> decoder_;
  std::size_t group_ = 0;
  bool is_in_page_ = false;  // messages name it
  std::size_t group_left_ = 0;
  std::size_t page_left_ = 0;
  Page page_;
  HybridDecoder levels_;
  std::size_t level_index_ = 0;  // where levels are packed in the old way
};

}  // namespace treadle::parquet

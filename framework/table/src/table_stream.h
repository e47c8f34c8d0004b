#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <treadle/core/data/batch_stream.h>
#include <treadle/core/data/data_provider.h>

#include <treadle/table/table_options.h>
#include <treadle/table/table_source.h>

#include "table_abilities.h"
#include "table_layout.h"

namespace treadle::table {

/// A table that is read anew in each pass, chunk by chunk; one chunk of a stream is in memory. A
/// first pass settles classes, categories, the dtype of each port, which columns have missing
/// values, and where each chunk begins: 32 bytes a chunk.
///
/// Each chunk that is read later is compared with the first pass, so rows that change under a run
/// are a DataError. Const functions are thread-safe.
class StreamedTable {
 public:
  /// Makes the first pass over `source`; `make` makes further ones. `known` as for read_table();
  /// borrows the options. Throws as read_table() does.
  StreamedTable(std::unique_ptr<TableSource> source, MakeSource make, const TableOptions& options,
                const OpenRequest& request, const TableDescription* known);

  const TableDescription& description() const { return description_; }
  const DataSpec& spec() const { return spec_; }
  std::int64_t rows() const { return positions_->rows(); }
  /// Where the rows are in the source.
  const std::shared_ptr<const RowPositions>& positions() const { return positions_; }
  /// Over the values of all rows, and the spec.
  const std::string& content_hash() const { return content_hash_; }

  /// A pass. Must not outlive the table.
  std::unique_ptr<BatchStream> stream(std::int64_t batch_size) const;

 private:
  class Stream;

  struct Chunk {
    TableSource::Bookmark begin;
    std::uint64_t hash = 0;
  };
  /// The dtypes that the whole table has, float32 or float64.
  struct Types {
    std::vector<bool> wide_numbers;  // per port
    std::vector<bool> wide_targets;  // per target
    bool wide_weights = false;
  };

  MakeSource make_;
  const TableOptions& options_;
  OpenRequest request_;
  TableDescription description_;
  DataSpec spec_;
  Types types_;
  std::vector<Chunk> chunks_;
  std::int64_t rows_in_chunk_ = 0;  // of the source
  std::shared_ptr<const RowPositions> positions_;
  std::string content_hash_;
};

}  // namespace treadle::table

#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "array_files.h"
#include "chunk_cache.h"
#include "row_source.h"

namespace treadle::arrays {

/// Rows that are read in chunks when they are asked for, and stay in a cache as long as its budget
/// allows. A gather visits each chunk it needs once, and holds one at a time.
class ChunkedRows final : public RowSource {
 public:
  /// A chunk has `chunk_rows` rows, or what is left of a file. `cache` may be shared with other
  /// arrays. Throws DataError when a chunk does not fit into the cache.
  ChunkedRows(std::shared_ptr<const ArrayFiles> array, std::int64_t chunk_rows,
              std::shared_ptr<ChunkCache> cache);

  void gather(std::span<const std::int64_t> rows, at::Tensor& out) const override;

 private:
  /// Some rows of one file.
  struct Chunk {
    std::size_t file = 0;
    std::int64_t begin = 0;  // in the file
    std::int64_t rows = 0;
  };
  /// A row that was asked for.
  struct Wanted {
    std::size_t chunk = 0;
    std::int64_t row = 0;    // in the chunk
    std::int64_t place = 0;  // in the batch
  };

  std::vector<Wanted> find(std::span<const std::int64_t> rows) const;
  template <typename From, typename To>
  void copy(const std::vector<Wanted>& wanted, std::size_t items, To* out) const;

  std::shared_ptr<const ArrayFiles> array_;
  std::int64_t chunk_rows_;
  std::shared_ptr<ChunkCache> cache_;
  std::vector<Chunk> chunks_;
  std::vector<std::size_t> first_chunks_;  // of each file
  std::size_t first_in_cache_ = 0;
};

}  // namespace treadle::arrays

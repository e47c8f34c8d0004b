#pragma once

#include <cstdint>

#include <treadle/core/data/batch_stream.h>

namespace treadle {

/// A stream over data that comes in chunks: files, pages of a query, blocks that are made up. Who
/// derives loads chunks by their number; cutting them into batches, and going on at any row after a
/// resume, is done here.
///
///     class Pages final : public ChunkedStream {
///       Chunk do_load(std::int64_t number, Batch& rows) override {
///         if (number == page_count_)
///           return Chunk::kEnd;
///         rows = parse(read_page(number));
///         return rows.size() > 0 ? Chunk::kRows : Chunk::kSkipped;
///       }
///     };
class ChunkedStream : public BatchStream {
 public:
  enum class Chunk {
    kRows,     ///< `rows` has some
    kSkipped,  ///< this chunk has none; the next one is requested
    kEnd       ///< there is no such chunk, and none after it
  };

 protected:
  explicit ChunkedStream(std::int64_t batch_size);

 private:
  /// Loads chunk `number` (from 0): inputs and, where there are any, targets, position_weights and
  /// weights. Batch::rows is set here, unless the chunk sets it. Chunks are requested one after the
  /// other, after a resume from the one that was being read; the same number gives the same rows.
  virtual Chunk do_load(std::int64_t number, Batch& rows) = 0;

  bool do_next(Batch& batch) final;
  StateDict do_state() const final;
  void do_load_state(const StateDict& state) final;
  /// Whether `chunk_` has a row that was not given yet; false at the end.
  bool fill();

  std::int64_t batch_size_;
  Batch chunk_;
  std::int64_t next_chunk_ = 0;  // after chunk_
  std::int64_t used_ = 0;        // rows of chunk_ that were given
  std::int64_t first_row_ = 0;   // of chunk_, in the stream
};

}  // namespace treadle

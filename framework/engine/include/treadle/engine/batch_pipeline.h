#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <treadle/base/random.h>
#include <treadle/core/batch_stream.h>
#include <treadle/core/row_reader.h>
#include <treadle/core/timeline.h>
#include <treadle/core/transform.h>

namespace treadle::engine {

/// How rows become batches.
struct PipelineOptions {
  std::int64_t batch_size = 32;
  bool shuffle = false;    ///< a new order each epoch, from the run's "shuffle" stream
  bool drop_last = false;  ///< leave out a last batch that is not full
  bool training = false;   ///< what transforms are told: augmentation acts only then
  /// Memory for batches that are ready or being prepared, in bytes; at least two batches are in
  /// flight.
  std::int64_t buffer_bytes = std::int64_t{4} << 20;
  Timeline* timeline = nullptr;  ///< null: nobody asks where the time goes
};

/// Batches prepared ahead of the consumer by a flow graph: ticket → gather and transform (in
/// parallel) → order restored → bounded buffer.
///
/// Order and randomness depend on the seed and the epoch alone, never on the number of workers. The
/// consumer hands out the tickets, so memory is bounded by the tickets in flight; they run on into
/// the next epoch, whose first batch is prepared while the last one trains. With one worker the
/// consumer prepares the batches itself while it waits.
///
/// An exception while preparing a batch comes out of next() when its turn comes, or out of epoch()
/// for the very first, naming epoch and batch. One consumer thread, inside ThreadBudget::run().
class BatchPipeline : public BatchSource {
 public:
  /// `reader` and `transforms` must outlive the pipeline. Expects at least one row, and a full
  /// batch when drop_last.
  BatchPipeline(const RowReader& reader, std::vector<std::int64_t> rows,
                std::vector<const Transform*> transforms, PipelineOptions options,
                RandomStreams random);
  ~BatchPipeline() override;

  /// Largest number of batches that were alive in the pipeline at once.
  std::int64_t most_in_flight() const;

 private:
  std::int64_t do_rows() const override;
  std::int64_t do_batches_per_epoch() const override;
  std::unique_ptr<BatchStream> do_epoch(std::int64_t epoch, std::int64_t first_batch) override;

  class Stream;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace treadle::engine

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <treadle/base/random.h>
#include <treadle/core/data/data_provider.h>
#include <treadle/core/data/row_reader.h>
#include <treadle/core/data/sampler.h>
#include <treadle/core/devices/device_backend.h>
#include <treadle/core/history/timeline.h>
#include <treadle/engine/batch_preparation.h>
#include <treadle/engine/divided_source.h>

namespace treadle::engine {

/// How rows become batches.
struct PipelineOptions {
  std::int64_t batch_size = 32;
  /// A new order each pass, from the run's "shuffle" stream; where there is no sampler.
  bool shuffle = false;
  const Sampler* sampler = nullptr;  ///< null: as `shuffle` has it
  bool drop_last = false;            ///< leave out a last batch that is not full
  /// Leave out a last batch of fewer rows, unless it is all there is of a pass.
  std::int64_t fewest_rows = 1;
  /// How many batches are an epoch, which then goes on where the one before ended, from one pass
  /// over the rows into the next. Nothing: an epoch is a pass.
  std::optional<std::int64_t> batches_per_epoch = std::nullopt;
  /// With `batches_per_epoch`: end with the first pass, wherever in an epoch that is. A pass whose
  /// rows are counted is ended by the number of steps.
  bool one_pass = false;
  bool training = false;  ///< passed to transforms: augmentation acts only then
  /// Memory for batches that are ready or being prepared, in bytes; at least two batches are in
  /// flight.
  std::int64_t buffer_bytes = std::int64_t{4} << 20;
  Timeline* timeline = nullptr;  ///< null: time is not measured
  /// Of a training step: a batch is prepared in as many pieces, each of which has its own draws of
  /// augmentation and is padded to its own longest row.
  std::size_t shards = 1;
  /// Where batches are handed out: copied there, ahead of their use, on a stream of their own.
  c10::Device device = c10::kCPU;
  /// Hand batches out on the CPU without the device's part of their preparation: evaluate() does
  /// it, which needs the rows on the host as well.
  bool host_part_only = false;
  /// Of `device`, or of where batches on the CPU are copied next: provides memory to copy from.
  /// Null: any memory.
  const DeviceBackend* staging = nullptr;
};

/// Training rows that are only read in order.
struct StreamInput {
  const DataProvider* data = nullptr;  ///< open; outlives the pipeline
  std::int64_t first_row = 0;          ///< of a pass: those before it validate
  /// Rows that are in memory at once, and in which samplers choose the order.
  std::int64_t window_rows = 8192;
};

/// Batches prepared ahead of the consumer by a flow graph: ticket → gather and prepare (in
/// parallel) → order restored → copied to the device and prepared there → bounded buffer. Of a
/// stream, one node reads windows in their order before.
///
/// Order and randomness depend on the seed and the epoch alone, never on the number of workers. The
/// consumer hands out the tickets, so memory is bounded by the tickets in flight; they run on into
/// the next epoch, whose first batch is prepared while the last one trains. With one worker the
/// consumer prepares the batches itself while it waits.
///
/// An exception while preparing a batch comes out of next() when its turn comes, or out of epoch()
/// for the very first, naming epoch and batch. One consumer thread, inside ThreadBudget::run().
class BatchPipeline : public DividedSource {
 public:
  /// `reader` and the transforms of `preparation` must outlive the pipeline. Expects at least one
  /// row, and a full batch when drop_last.
  BatchPipeline(const RowReader& reader, RowList rows, BatchPreparation preparation,
                PipelineOptions options, RandomStreams random);
  /// The rows of a stream. The transforms of `preparation` must outlive the pipeline.
  BatchPipeline(StreamInput input, BatchPreparation preparation, PipelineOptions options,
                RandomStreams random);
  ~BatchPipeline() override;

  /// Batches of a pass over the rows. DataProvider::kEndless where it has no end; nothing: not
  /// known before it.
  std::optional<std::int64_t> batches_per_pass() const;

  std::unique_ptr<StepStream> steps(std::int64_t epoch, std::int64_t first_batch,
                                    ShardRange own) override;
  std::unique_ptr<BatchStream> every(std::int64_t epoch, std::int64_t first,
                                     std::int64_t step) override;

  /// Largest number of batches that were alive in the pipeline at once.
  std::int64_t most_in_flight() const;

 private:
  std::optional<std::int64_t> do_batches_per_epoch() const override;
  std::unique_ptr<BatchStream> do_epoch(std::int64_t epoch, std::int64_t first_batch) override;
  StateDict do_state(std::int64_t epoch, std::int64_t first_batch) const override;
  void do_load_state(const StateDict& state) override;

  class Epoch;
  class Stream;
  class Steps;
  struct Share;
  struct Impl;

  Epoch open(std::int64_t epoch, std::int64_t first_batch, const Share& share);

  std::unique_ptr<Impl> impl_;
};

}  // namespace treadle::engine

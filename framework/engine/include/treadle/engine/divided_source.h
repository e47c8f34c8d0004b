#pragma once

#include <cstdint>
#include <memory>

#include <treadle/core/data/batch_stream.h>
#include <treadle/core/training/sum_tree.h>
#include <treadle/engine/step_rows.h>

namespace treadle::engine {

/// Steps one after the other until there are none, as BatchStream has batches.
class StepStream {
 public:
  virtual ~StepStream();
  /// False when there is none.
  virtual bool next(StepRows& rows) = 0;
};

/// A source of which a process prepares its own part alone. The parts of all processes are the
/// whole: each row has the bits that epoch() gives it. Streams are bound as those of epoch().
class DividedSource : public BatchSource {
 public:
  /// The batches from `first_batch` on, each cut into as many shards as the source was made for:
  /// those of `own`. A shard is padded to its own longest row.
  virtual std::unique_ptr<StepStream> steps(std::int64_t epoch, std::int64_t first_batch,
                                            ShardRange own) = 0;
  /// Of the batches of `epoch`, the one at `first` and every `step`-th after it. Expects an epoch
  /// that is a pass.
  virtual std::unique_ptr<BatchStream> every(std::int64_t epoch, std::int64_t first,
                                             std::int64_t step) = 0;
};

}  // namespace treadle::engine

#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <vector>

#include <c10/core/Stream.h>

#include <treadle/base/random.h>
#include <treadle/core/training/sum_tree.h>
#include <treadle/engine/batch_pipeline.h>
#include <treadle/engine/batch_preparation.h>
#include <treadle/engine/step_rows.h>
#include <treadle/tensor/device_streams.h>

#include "data/row_supply.h"

namespace treadle::engine {

/// What all slots of a pipeline have in common. Outlives them.
struct SlotWork {
  const BatchPreparation& preparation;
  const PipelineOptions& options;
  const RandomStreams& random;
  c10::Stream copies;  ///< to the device
};

/// Where a batch of a pipeline is prepared and waits: in one piece, or in those of its shards that
/// are wanted. Its tensors are written again where their last user has let go of them. One thread
/// at a time.
class BatchSlot {
 public:
  /// The next batch to prepare. `section`: null where the pass has ended before.
  Place place;
  std::shared_ptr<const Section> section;
  std::exception_ptr error;

  /// Gathers the rows and prepares them on the host: the shards `wanted`.
  void fill(const SlotWork& work, ShardRange wanted);
  /// Enqueues the copies to the device, and the rest of the preparation there; the host goes on.
  void send(const SlotWork& work);
  /// For work that the calling thread enqueues from now on.
  StepRows take(const SlotWork& work);
  /// Of what was filled: those on the host, or on the device where there is one.
  std::int64_t bytes(const SlotWork& work) const;

 private:
  /// A shard, or a whole batch.
  struct Part {
    std::size_t shard = 0;
    Batch batch;  // on the host
    BatchPreparation::Memory memory;
    Batch sent;  // the same on the device, where there is one
  };

  void fill(Part& part, const SlotWork& work);
  ApplyContext context_of(const Part& part, const SlotWork& work) const;

  std::int64_t count_ = 0;  // rows of the batch
  std::vector<Part> parts_;
  std::vector<std::int64_t> rows_;
  StreamEvent arrived_;
};

}  // namespace treadle::engine

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include <treadle/base/provided.h>
#include <treadle/core/components/state_dict.h>
#include <treadle/core/data/batch.h>

namespace treadle {

/// Batches one after the other until there are none. One consumer; concurrency, if any, is inside.
class BatchStream : public Stateful, public Provided {
 public:
  ~BatchStream() override;

  /// Puts the next batch into `batch`; false when there is none, and then `batch` is untouched. The
  /// tensors stay valid as long as a handle to them exists. Rethrows exceptions of the preparation
  /// of the batch.
  bool next(Batch& batch);

 private:
  virtual bool do_next(Batch& batch) = 0;
};

/// The batches of a training set or a validation set, epoch by epoch. Made by the framework
/// (engine::BatchPipeline), used by its training session.
class BatchSource {
 public:
  virtual ~BatchSource();

  /// Nothing: not known before an epoch has ended, as of a stream.
  std::optional<std::int64_t> batches_per_epoch() const { return do_batches_per_epoch(); }

  /// The batches of `epoch` (from 0) from batch `first_batch` on. Which rows are in which batch
  /// depends on the run's seed and the epoch alone. The stream must not outlive the source; opening
  /// one ends the one before.
  std::unique_ptr<BatchStream> epoch(std::int64_t epoch, std::int64_t first_batch = 0) {
    return do_epoch(epoch, first_batch);
  }

  /// The place in a stream from which another process continues at epoch(epoch, first_batch), where
  /// the consumer is now. Empty where the two numbers are enough.
  StateDict state(std::int64_t epoch, std::int64_t first_batch) const {
    return do_state(epoch, first_batch);
  }
  void load_state(const StateDict& state) { do_load_state(state); }

 private:
  virtual std::optional<std::int64_t> do_batches_per_epoch() const = 0;
  virtual std::unique_ptr<BatchStream> do_epoch(std::int64_t epoch, std::int64_t first_batch) = 0;
  virtual StateDict do_state(std::int64_t epoch, std::int64_t first_batch) const;
  virtual void do_load_state(const StateDict& state);
};

}  // namespace treadle

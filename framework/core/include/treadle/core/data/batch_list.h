#pragma once

#include <cstddef>
#include <vector>

#include <treadle/core/data/batch_stream.h>

namespace treadle {

/// A stream over batches that are in memory already: those of a test, or of a program that made
/// them. They are handed out as they are; handles, no copies.
class BatchList final : public BatchStream {
 public:
  explicit BatchList(std::vector<Batch> batches);
  ~BatchList() override;

  /// The first batch is the next one again.
  void reset() { next_ = 0; }

 private:
  bool do_next(Batch& batch) override;
  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;

  std::vector<Batch> batches_;
  std::size_t next_ = 0;
};

}  // namespace treadle

#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <treadle/engine/shard_group.h>

#include "session/evaluated_batch.h"

namespace treadle::engine {

/// An evaluation by several processes, in rounds: of `W` processes the one of rank r has every W-th
/// batch from batch r on. After a round each process has the results of all of its batches, in the
/// order of the rows, so metrics of any kind have everywhere what they have in one process. Inputs
/// stay where they are.
class EvaluationRounds {
 public:
  explicit EvaluationRounds(ShardGroup& group) : group_(group) {}

  /// `own`: fewer than `asked` where this process has no more. `at_once`: how many this process can
  /// evaluate at a time. Throws the failure of the first batch that failed, in every process.
  std::vector<EvaluatedBatch> exchange(std::span<EvaluatedBatch> own, std::size_t asked,
                                       std::size_t at_once);

  /// Whether there may be batches behind those of the last round.
  bool has_more() const { return has_more_; }
  /// How many each process can evaluate at a time, by the last round.
  std::size_t at_once() const { return at_once_; }

 private:
  ShardGroup& group_;
  bool has_more_ = true;
  std::size_t at_once_ = 1;
};

}  // namespace treadle::engine

#pragma once

#include <cstddef>
#include <exception>
#include <span>
#include <vector>

#include <treadle/core/data/batch.h>
#include <treadle/core/model/model.h>
#include <treadle/core/training/objective.h>
#include <treadle/core/validation/predictions.h>
#include <treadle/engine/shard_group.h>

namespace treadle::engine {

/// A batch and its results.
struct EvaluatedBatch {
  Batch batch;
  Outputs outputs;  ///< only where a loss needs those of all rows, or samples are drawn of them
  Predictions predictions;
  BatchLoss loss;
  std::exception_ptr error;
};

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

#pragma once

#include <cstdint>

#include <treadle/core/training/evaluation.h>
#include <treadle/engine/evaluation.h>
#include <treadle/engine/run_context.h>
#include <treadle/engine/session.h>

namespace treadle::engine {

EvaluationSetup evaluation_setup(const SessionSetup& setup);

/// The loss and the metrics of an epoch: of validation rows, or of batches that the loop evaluates.
/// One training thread.
class EpochEvaluation {
 public:
  EpochEvaluation(const SessionSetup& setup, const RunContext& context)
      : setup_(setup), context_(context), losses_(*setup.objective) {}

  /// The loss over a stream. Throws Interrupted when a stop is requested.
  Evaluation loss_over(BatchStream& rows) const;
  /// The loss and the metrics of `rows` from `first_batch` on, into `summary`. Throws the same.
  void evaluate(BatchSource& rows, std::int64_t first_batch, EpochSummary& summary) const;

  /// A further batch of the epoch, on the model's device and prepared.
  void add(const Batch& batch);
  /// The loss and the metrics of those batches, into `summary`. Nothing where there are none.
  void take(EpochSummary& summary);

  void save_in(StateDict& state) const;
  void load_from(const StateDict& state);

 private:
  /// None where processes train together: all stop at the next step.
  std::stop_token stop_token() const;
  void reset_metrics() const;
  void add_metrics(EpochSummary& summary) const;

  const SessionSetup& setup_;
  const RunContext& context_;
  LossTotals losses_;  // of the batches that were added
};

}  // namespace treadle::engine

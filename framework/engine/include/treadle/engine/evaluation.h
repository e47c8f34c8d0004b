#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <vector>

#include <treadle/core/data/batch_stream.h>
#include <treadle/core/data/data_spec.h>
#include <treadle/core/history/timeline.h>
#include <treadle/core/model/model.h>
#include <treadle/core/model/model_spec.h>
#include <treadle/core/precision/precision.h>
#include <treadle/core/training/evaluation.h>
#include <treadle/core/training/objective.h>
#include <treadle/core/validation/metric_computer.h>
#include <treadle/engine/batch_preparation.h>
#include <treadle/engine/loss_totals.h>
#include <treadle/engine/shard_group.h>

namespace treadle::engine {

/// The samples to draw from the distributions that a model predicts.
struct DrawRequest {
  std::int64_t count = 1;  ///< for each row
  /// The seed of a draw, by the row (Batch::rows), the sample and the target. Called from any
  /// thread.
  std::function<std::uint64_t(std::int64_t row, std::int64_t sample, std::size_t target)> seed;
};

/// Monte Carlo dropout: the prediction is the mean over passes in which the modules that
/// DrawsInTraining draw. The model has its modes when it is called: see dropout_mode.h.
struct DropoutRequest {
  std::int64_t passes = 1;
  /// The seed of the draws of a pass for a batch, by the pass and the first of the batch's rows
  /// (Batch::rows). Called from any thread.
  std::function<std::uint64_t(std::int64_t pass, std::int64_t row)> seed;
};

/// The inputs of an evaluation or prediction. Everything outlives the call.
struct EvaluationSetup {
  Model* model = nullptr;
  const Objective* objective = nullptr;
  /// Its device's part is done to each batch, and all of it is undone on predictions. Null: batches
  /// come as the model takes them, and predictions stay as they are.
  const BatchPreparation* preparation = nullptr;
  Timeline* timeline = nullptr;  ///< null: time is not measured
  Precision precision = {};      ///< the training's
  /// Null: predictions have no samples. Expects losses that draw them (DrawsSamples).
  const DrawRequest* samples = nullptr;
  /// The stream has every so manyth batch, from that of this process's rank on, and all processes
  /// evaluate together: see rows_to_evaluate(). Null: it has all batches.
  ShardGroup* group = nullptr;
  /// Null: one pass. Else there are no samples, no loss, and the model keeps no state.
  const DropoutRequest* dropout = nullptr;
  /// Whether predictions have an uncertainty, as far as the loss and passes give it.
  bool with_uncertainty = false;
};

/// The number of rows to evaluate in one batch: as many as have 256 KiB of inputs, no fewer than
/// `least`, no more than `most`; but at most as many as have 64 MiB of outputs in float32, however
/// few these are: a training with a loss in chunks holds no outputs of a whole batch either.
/// **Rationale:** the output of a layer must stay in the caches of a core; images of 28 x 28 in
/// batches of 1024 took twice as long a row as in batches of 64.
std::int64_t evaluation_batch(const ModelSpec& model, std::int64_t least, std::int64_t most);

/// The elements of a row of such a shape, with 64 for a dimension that varies.
std::int64_t elements_of_row(const std::vector<std::int64_t>& shape);

/// The largest number of batches that are evaluated at once.
inline constexpr std::int64_t kMostBatchesAtOnce = 8;

/// The batches of `source` for evaluate(): those of this process where there is a group, the source
/// can be divided and the model keeps no state from one batch to the next. Otherwise all, and
/// setup.group is null after.
std::unique_ptr<BatchStream> rows_to_evaluate(BatchSource& source, EvaluationSetup& setup);

/// Runs the model in eval mode (unless `dropout` is requested), without gradients, over the rest of
/// `stream`, and hands each batch's predictions, in the data's units, to `visit`, in the order of
/// the stream and on the calling thread. The model's mode is restored. Throws Interrupted when a
/// stop is requested.
///
/// With several workers, batches are evaluated at once, each with a context of its own, as many as
/// fit into some memory; sums are added in order, so no bit depends on it. A model that keeps a
/// state to its second batch gets one batch after the other. A loss that is not additive is
/// computed once, over all rows, whose outputs are kept until then. When several fail, the failure
/// of the first in order is thrown. Expects to be inside ThreadBudget::run(), or has one worker.
///
/// With a group, `visit` has the batches of all processes in each of them, without their inputs,
/// and a failure is thrown in each; a stop is none.
Evaluation evaluate(const EvaluationSetup& setup, BatchStream& stream, std::stop_token stop,
                    const std::function<void(const Predictions&, const Batch&)>& visit);

/// Predictions for one batch, in the data's units. The model must be in eval mode.
Predictions predict(const EvaluationSetup& setup, const Batch& batch);

/// Evaluates one batch of the training, which is wherever the training has it, with all of its
/// preparation done: adds its loss to `losses` and the batch to `metrics`. Of a loss that is not
/// additive, that of the batch. The model's mode is restored.
void test_batch(const EvaluationSetup& setup, const Batch& batch, LossTotals& losses,
                std::span<const TargetMetric> metrics);

/// The same as evaluate(), feeding metrics; they are reset first.
Evaluation evaluate_metrics(const EvaluationSetup& setup, BatchStream& stream, std::stop_token stop,
                            std::span<const TargetMetric> metrics);

}  // namespace treadle::engine

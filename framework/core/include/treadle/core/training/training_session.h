#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include <treadle/base/random.h>
#include <treadle/core/data/batch.h>
#include <treadle/core/data/batch_stream.h>
#include <treadle/core/history/run_observer.h>
#include <treadle/core/model/model.h>
#include <treadle/core/precision/precision.h>
#include <treadle/core/training/evaluation.h>
#include <treadle/core/training/gradient_strategy.h>
#include <treadle/core/training/objective.h>

namespace treadle {

class GroupNames;

/// Some of a model's parameters, for updates that leave the others as they are. Made by
/// TrainingSession::parameters().
struct ParameterSet {
  std::vector<bool> members;  ///< in the order of the model's parameters
};

/// One update of parameters, from the gradients of one batch.
struct Update {
  /// Of the first optimizer; groups follow in proportion. One with a schedule of its own has the
  /// rate of that, times what this rate is of the first optimizer's schedule.
  double learning_rate = 0;
  /// Empty: the update that belongs to the step. Another kind of update has a name, and with it
  /// steps (for bias corrections) and random numbers of its own, counted over the whole training.
  std::string_view name = {};
  const ParameterSet* parameters = nullptr;  ///< null: all of them
  /// Undefined: the document's loss. Otherwise the name is one of LoopNeeds::losses.
  LossFunction loss = {};
};

/// One training in the hands of a loop (TrainingWorkflow): the model, its rows and everything that
/// an update needs are behind it, so a loop cannot omit any of it.
///
/// A step is what a loop does with one batch of the epoch: usually one update. It is done when the
/// loop asks for the next batch or ends the epoch; then callbacks see it, and a checkpoint is saved
/// if it is due, with the state of the loop. Changes between finish_epoch() and next_epoch() are in
/// the checkpoint of next_epoch(). A resumed training begins where the last one was saved, which
/// may be in the middle of an epoch.
///
/// Rows have names: "training" are those of the epochs, and LoopNeeds::parts sets some aside. All
/// that comes from the session is on the model's device and ready for the model.
///
/// Functions that read rows or train throw Interrupted when a stop is requested, after saving
/// unless they are called within a step, and TrainingError, naming epoch and step, when a loss or a
/// gradient is no longer finite. Let both pass.
///
/// Made by the framework (engine::Session). Used from the training thread.
class TrainingSession {
 public:
  virtual ~TrainingSession();

  // Progress.

  /// All epochs are trained, or something has stopped the training.
  virtual bool is_finished() const = 0;
  /// Epochs that finish_epoch() has ended.
  virtual std::int64_t epochs_done() const = 0;
  /// Steps that are done, over all epochs.
  virtual std::int64_t steps_done() const = 0;
  /// How many epochs are planned; nothing: until something stops the training.
  virtual std::optional<std::int64_t> epochs() const = 0;
  /// Steps in one epoch; nothing: not known before its data has ended.
  virtual std::optional<std::int64_t> steps_per_epoch() const = 0;
  /// The learning rate of the schedule for the next step of the epoch, times what callbacks have
  /// made of it; that of the last step where there is none.
  virtual double scheduled_rate() const = 0;

  /// Whether there is an epoch to train: the next, or after a resume the one that was begun.
  virtual bool next_epoch() = 0;
  /// Ends the epoch; batches that it has left are not trained on. Evaluates the validation rows,
  /// runs the callbacks and adds a row to the history, which is the result. Expects a step since
  /// the last call, or a resumed training, unless the loop makes no updates. `train_loss`: of the
  /// loop's own, in place of the mean over the updates of the epoch.
  virtual EpochSummary finish_epoch(const std::optional<Number>& train_loss = {}) = 0;
  /// Ends the training with the epoch that is being trained, or that was finished last. The reason
  /// is for people.
  virtual void stop(const std::string& reason) = 0;

  // Rows.

  /// Begins a step with the next batch of the epoch; nothing at its end: call finish_epoch().
  virtual std::optional<Batch> next_batch() = 0;
  /// The next batch of a part that was set aside. Passes over it follow one another, whatever an
  /// epoch is.
  virtual Batch next_batch(std::string_view part) = 0;
  /// One pass over rows in the order of the data, as they are evaluated. A new pass ends the one
  /// before. For a loop that computes its model from all rows: read_all().
  virtual std::unique_ptr<BatchStream> read(std::string_view rows) = 0;
  /// The names of Batch::groups; null: they are known by their numbers.
  virtual const GroupNames* group_names() const = 0;

  // Training.

  virtual Model& model() = 0;
  virtual const Objective& objective() const = 0;
  virtual const Precision& precision() const = 0;
  /// For a ForwardContext of the loop's own.
  virtual std::stop_token stop_token() const = 0;
  /// For what a loop draws: the streams of this training.
  virtual const RandomStreams& random() const = 0;
  /// The parameters whose names `contains` is true for.
  virtual ParameterSet parameters(const std::function<bool(std::string_view name)>& contains) = 0;

  /// Forward and backward of the batch (in shards, by the document's gradient strategy), clip,
  /// update, averages. Within a step, which has at most one update without a name.
  virtual void update(const Batch& batch, const Update& update) = 0;
  /// The usual step: next_batch(), one update(), and the end of the step. False at the end of the
  /// epoch.
  virtual bool step(double learning_rate) = 0;

  // Evaluation.

  /// The loss of the model as it is, over rows with a name.
  virtual Evaluation evaluate(std::string_view rows) = 0;
  /// Evaluates the batch with the model as it is; a stop waits for it. The loss and the metrics
  /// over all batches of the epoch that were evaluated so are in its row of the history, in the
  /// place of validation rows. Expects a training without these.
  virtual void evaluate(const Batch& batch) = 0;
};

/// All that is left of a stream, as one batch; nothing of an empty one. Dimensions that vary are
/// padded to the longest row.
std::optional<Batch> read_all(BatchStream& stream);

}  // namespace treadle

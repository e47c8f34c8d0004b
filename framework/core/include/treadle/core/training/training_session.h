#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include <treadle/base/random.h>
#include <treadle/core/history/run_observer.h>

namespace treadle {

class GroupNames;

/// A batch that was predicted before it is trained on.
struct TestedBatch {
  std::int64_t rows = 0;
  /// The group of each row; empty where the data has no groups. Valid until the batch after it.
  std::span<const std::int64_t> groups = {};
  const GroupNames* group_names = nullptr;  ///< null: a group is known by its number
};

/// One training in the hands of a loop (TrainingWorkflow): the model, its data and everything that
/// a step needs are behind it, so a loop cannot omit any of it.
///
/// A step takes the next batch of the epoch: forward and backward (in shards, by the document's
/// gradient strategy), clip, update, averages, callbacks. finish_epoch() evaluates the validation
/// rows, runs the callbacks and adds a row to the history.
///
/// Checkpoints are saved when they are due, with the state of the loop: at the end of a step, and
/// in next_epoch(), so what a loop does between finish_epoch() and next_epoch() is in them. A
/// resumed training begins where the last one was saved, which may be in the middle of an epoch.
///
/// Made by the framework (engine::Session). Used from the training thread.
class TrainingSession {
 public:
  virtual ~TrainingSession();

  /// All epochs are trained, or something has stopped the training.
  virtual bool is_finished() const = 0;
  /// Epochs that finish_epoch() has ended.
  virtual std::int64_t epochs_done() const = 0;
  /// Batches trained on, over all epochs.
  virtual std::int64_t steps_done() const = 0;
  /// How many epochs are planned; nothing: until something stops the training.
  virtual std::optional<std::int64_t> epochs() const = 0;
  /// Steps in one epoch; nothing: not known before its data has ended.
  virtual std::optional<std::int64_t> steps_per_epoch() const = 0;

  /// The learning rate of the schedule for the next step of the epoch, times what callbacks have
  /// made of it; that of the last step where there is none.
  virtual double scheduled_rate() const = 0;

  /// Whether there is an epoch to train: the next, or after a resume the one that was begun.
  /// Throws like step().
  virtual bool next_epoch() = 0;

  /// Predicts the batch that the next step() trains on, with the model as it is, in eval mode;
  /// nothing where the epoch has none left. The loss and the metrics over all batches that were
  /// tested so are those of the epoch's row of the history, in the place of validation rows. step()
  /// is the next call.
  ///
  /// Only for a loop whose schema has `x-treadle-tests-first`: its trainings have no validation
  /// rows. Throws like step(), except that a stop waits for it.
  virtual std::optional<TestedBatch> test_next() = 0;

  /// Trains on the next batch of the epoch; false: there is none, call finish_epoch(). The rate is
  /// the first optimizer's; groups follow in proportion. One with a schedule of its own has the
  /// rate of that, times what the rate is of the first optimizer's schedule.
  ///
  /// Throws Interrupted, after saving, when a stop is requested, and TrainingError, naming epoch
  /// and step, when the loss or a gradient is no longer finite. Let both pass.
  virtual bool step(double learning_rate) = 0;

  /// Ends the epoch; steps that it has left are not made. Expects a step since the last call, or a
  /// resumed training. The row it has added to the history. Throws like step().
  virtual EpochSummary finish_epoch() = 0;

  /// Ends the training with the epoch that is being trained, or that was finished last. The reason
  /// is for people.
  virtual void stop(const std::string& reason) = 0;

  /// For what a loop draws: the streams of this training.
  virtual const RandomStreams& random() const = 0;
};

}  // namespace treadle

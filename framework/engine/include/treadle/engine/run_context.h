#pragma once

#include <optional>
#include <stop_token>
#include <string>

#include <treadle/base/random.h>
#include <treadle/core/components/state_dict.h>
#include <treadle/core/history/run_observer.h>

namespace treadle::engine {

/// Where a training is, for the question whether to save.
struct TrainingPosition {
  std::int64_t epochs_done = 0;
  std::int64_t steps_done = 0;
  bool at_epoch_end = false;
  bool finished = false;
};

/// Services of the run for a training session: a place to save, a receiver of reports, the stop.
/// Implemented by the host. One object per training, used from the training thread.
class RunContext {
 public:
  virtual ~RunContext();

  const FitId& fit() const { return do_fit(); }
  /// Streams of this training; what is drawn in one training changes nothing in another.
  const RandomStreams& random() const { return do_random(); }

  /// Requested when the user stops the run: checked after every step.
  std::stop_token stop_token() const { return do_stop_token(); }

  /// Call after every step: costs next to nothing. Observers receive the newest, a few times a
  /// second.
  void step_completed(const StepProgress& progress) { do_step_completed(progress); }
  /// Adds a row to the history.
  void epoch_completed(const EpochSummary& summary) { do_epoch_completed(summary); }
  void note(const std::string& text) { do_note(text); }
  /// The same, unless a training of the run has noted this `subject` already.
  void note_once(const std::string& subject, const std::string& text) {
    do_note_once(subject, text);
  }

  /// Saves `state` as the last checkpoint (keeping `keep` of them) in such a way that a crash at
  /// any instant leaves a good one. Must be called between steps.
  ///
  /// Returns when the state has been copied: what it refers to may change. The files are written
  /// beside the training; they are safe at the latest when the host goes on after train(), however
  /// that ended, or when last_checkpoint() returns. A newer checkpoint takes the place of one that
  /// has not been begun. Throws what went wrong with an earlier one.
  void save_checkpoint(const StateDict& state, const TrainingPosition& position, int keep) {
    do_save_checkpoint(state, position, keep);
  }

  /// The state of the last good checkpoint of this training; nothing when it starts from the
  /// beginning. History has been cut back to it.
  std::optional<StateDict> resume_state() { return do_resume_state(); }

  /// Where the last good checkpoint lies, for error messages; empty when there is none. Waits for
  /// what is being written.
  std::string last_checkpoint() const { return do_last_checkpoint(); }

 private:
  virtual const FitId& do_fit() const = 0;
  virtual const RandomStreams& do_random() const = 0;
  virtual std::stop_token do_stop_token() const = 0;
  virtual void do_step_completed(const StepProgress& progress) = 0;
  virtual void do_epoch_completed(const EpochSummary& summary) = 0;
  virtual void do_note(const std::string& text) = 0;
  virtual void do_note_once(const std::string& subject, const std::string& text);
  virtual void do_save_checkpoint(const StateDict& state, const TrainingPosition& position,
                                  int keep) = 0;
  virtual std::optional<StateDict> do_resume_state() = 0;
  virtual std::string do_last_checkpoint() const = 0;
};

}  // namespace treadle::engine

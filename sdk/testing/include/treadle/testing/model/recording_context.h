#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <treadle/base/error.h>
#include <treadle/engine/run_context.h>

namespace treadle::testing {

/// What a training reports to its host, written down. Stops the training when told to, keeps
/// all its checkpoints, and can continue from each of them.
class RecordingContext final : public engine::RunContext {
 public:
  /// A checkpoint, with what had been told by then.
  struct Saved {
    StateDict state;
    engine::TrainingPosition position;
    int keep = 0;
    std::size_t steps_told = 0;
    std::size_t epochs_told = 0;
  };

  RecordingContext() = default;
  explicit RecordingContext(const RandomStreams& random) : random_(random) {}
  /// Continues `before` from one of its checkpoints, as a new process would: what came later is
  /// forgotten.
  RecordingContext(const RecordingContext& before, const Saved& from)
      : random_(before.random_),
        steps_(before.steps_.begin(), before.steps_.begin() + index(from.steps_told)),
        epochs_(before.epochs_.begin(), before.epochs_.begin() + index(from.epochs_told)),
        resumes_from_(from.state) {}

  /// Asks for a stop when told of this step, of all epochs.
  void stop_after_step(std::int64_t step) { stop_step_ = step; }
  /// Asks for a stop when told of the end of this epoch.
  void stop_after_epoch(std::int64_t epoch) { stop_epoch_ = epoch; }
  void stop_now() { stop_.request_stop(); }
  void resume_from(const StateDict& state) { resumes_from_ = state; }
  /// Lets every attempt to save fail.
  void fill_the_disk() { disk_is_full_ = true; }

  /// Of the whole training, also of the processes before this one.
  const std::vector<StepProgress>& steps() const { return steps_; }
  const std::vector<EpochSummary>& epochs() const { return epochs_; }
  /// How many steps had been told when each epoch of this process ended.
  const std::vector<std::size_t>& steps_before_epochs() const { return steps_before_epochs_; }
  const std::vector<Saved>& checkpoints() const { return checkpoints_; }
  /// Of this process.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  static std::ptrdiff_t index(std::size_t count) { return static_cast<std::ptrdiff_t>(count); }

  const FitId& do_fit() const override { return fit_; }
  const RandomStreams& do_random() const override { return random_; }
  std::stop_token do_stop_token() const override { return stop_.get_token(); }

  void do_step_completed(const StepProgress& progress) override {
    steps_.push_back(progress);
    if (progress.step == stop_step_)
      stop_.request_stop();
  }
  void do_epoch_completed(const EpochSummary& summary) override {
    epochs_.push_back(summary);
    steps_before_epochs_.push_back(steps_.size());
    if (summary.epoch == stop_epoch_)
      stop_.request_stop();
  }
  void do_note(const std::string& text) override { notes_.push_back(text); }

  void do_save_checkpoint(const StateDict& state, const engine::TrainingPosition& position,
                          int keep) override {
    if (disk_is_full_)
      throw StorageError("no space left on device");
    checkpoints_.push_back({state.snapshot(), position, keep, steps_.size(), epochs_.size()});
  }
  std::optional<StateDict> do_resume_state() override { return resumes_from_; }
  std::string do_last_checkpoint() const override {
    return checkpoints_.empty() ? "" : "checkpoint-" + std::to_string(checkpoints_.size());
  }

  FitId fit_{"fold-1", 0, 1};
  RandomStreams random_{11};
  std::stop_source stop_;
  std::int64_t stop_step_ = 0;
  std::int64_t stop_epoch_ = 0;
  bool disk_is_full_ = false;
  std::vector<StepProgress> steps_;
  std::vector<EpochSummary> epochs_;
  std::vector<std::size_t> steps_before_epochs_;
  std::vector<Saved> checkpoints_;
  std::vector<std::string> notes_;
  std::optional<StateDict> resumes_from_;
};

}  // namespace treadle::testing

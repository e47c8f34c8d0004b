#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <treadle/core/run_observer.h>

#include "progress_text.h"
#include "terminal.h"

namespace treadle::cli {

/// Shows a run while it happens: lines for epochs and notes and, where the terminal can repaint,
/// one line below them that moves.
///
/// A step costs a few stores: a thread of the view's looks at them ten times a second. Everything
/// else is under one lock.
class ProgressView final : public RunObserver {
 public:
  /// With `silent` it only remembers the folder.
  ProgressView(Terminal terminal, bool silent);
  ~ProgressView() override;

  /// Prints a sentence without disturbing the live line. Any thread.
  void announce(const std::string& text);
  /// Takes the live line away for good; called before anything else is printed.
  void finish();

  /// The run's folder; empty before the run has one.
  std::string folder() const;

 private:
  using Clock = std::chrono::steady_clock;

  /// What the training threads write and the painting thread reads.
  struct Steps {
    std::atomic<std::int64_t> epoch{0};
    std::atomic<std::int64_t> epochs{0};
    std::atomic<std::int64_t> step{0};
    std::atomic<std::int64_t> total_steps{0};
    StepProgress read() const;
  };
  struct Training {
    TrialId id;
    Steps steps;
    std::optional<EpochSummary> last;
    bool is_last_shown = false;
    bool is_done = false;
    std::int64_t steps_at_start = -1;  ///< of a resumed training; -1: no step seen yet
  };
  struct Sample {
    Clock::time_point when;
    std::int64_t steps;
  };

  void do_run_started(const std::string& name, const std::string& folder) override;
  void do_trial_started(const TrialId& trial) override;
  void do_step_completed(const TrialId& trial, const StepProgress& progress) override;
  void do_epoch_completed(const TrialId& trial, const EpochSummary& summary) override;
  void do_trial_completed(const TrialId& trial, const TrialSummary& summary) override;
  void do_noted(const std::string& text) override;

  Training* find(const TrialId& trial);
  void print(const std::string& line);
  void print_epoch(Training& training, const EpochSummary& summary);
  void erase_live_line();
  void paint();
  void keep_painting(std::stop_token stop);
  LiveState look();
  void measure(LiveState& state);

  const Terminal terminal_;
  const bool silent_;

  mutable std::mutex mutex_;  // guards what follows, but for the atomics in trainings_
  std::condition_variable_any wake_;
  std::string folder_;
  /// As many as the run has, made once: step_completed reads it without the lock.
  std::unique_ptr<Training[]> trainings_;
  std::atomic<std::int64_t> training_count_{0};
  std::optional<EpochTable> table_;
  bool has_live_line_ = false;
  bool is_finished_ = false;
  std::deque<Sample> samples_;
  std::jthread painter_;
};

}  // namespace treadle::cli

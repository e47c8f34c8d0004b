#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <treadle/core/history/run_observer.h>

#include "terminal/progress_text.h"
#include "terminal/terminal.h"

namespace treadle::cli {

/// Shows a run while it happens: lines for epochs and notes and, where the terminal can repaint,
/// one line below them that moves; elsewhere, such as in a log file, the same line whenever nothing
/// was printed for a while. Of a search it shows a line for each trial that has ended, and below
/// them a table of what is running.
///
/// Fits are known by their paths, from when they start: a plan may grow. A thread of the view's
/// looks at them ten times a second. Everything is under one lock.
class ProgressView final : public RunObserver {
 public:
  /// With `silent` it only remembers the folder. `quiet`: how long a log is without a line.
  ProgressView(Terminal terminal, bool silent, std::chrono::milliseconds quiet = kQuiet);
  ~ProgressView() override;

  /// Prints a sentence without disturbing the live line. Any thread.
  void announce(const std::string& text);
  /// Takes the live line away for good; called before anything else is printed.
  void finish();

  /// The run's folder; empty before the run has one.
  std::string folder() const;

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kQuiet{30000};

  struct Training {
    FitId id;
    StepProgress steps = {};
    std::optional<EpochSummary> last = std::nullopt;
    bool is_last_shown = false;
    bool is_done = false;
    std::int64_t steps_at_start = -1;  ///< of a resumed training; -1: no step seen yet
  };
  struct Sample {
    Clock::time_point when;
    std::int64_t steps;
  };

  void do_run_started(const std::string& name, const std::string& folder) override;
  void do_fit_started(const FitId& fit) override;
  void do_step_completed(const FitId& fit, const StepProgress& progress) override;
  void do_epoch_completed(const FitId& fit, const EpochSummary& summary) override;
  void do_fit_completed(const FitId& fit, const FitSummary& summary) override;
  void do_trial_changed(const TrialSummary& trial, const SearchProgress& search) override;
  void do_noted(const std::string& text) override;

  Training* find(const FitId& fit);
  void print(const std::string& line);
  void print_epoch(Training& training, const EpochSummary& summary);
  void erase_live_lines();
  void paint();
  void keep_painting(std::stop_token stop);
  void keep_reporting(std::stop_token stop);
  LiveState look();
  void measure(LiveState& state);
  void measure_search(LiveState& state) const;

  const Terminal terminal_;
  const bool silent_;
  const std::chrono::milliseconds quiet_;

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable_any wake_;
  std::string folder_;
  std::deque<Training> trainings_;   // in the order in which they started
  std::int64_t training_count_ = 0;  // those of the run, as far as it has said
  std::optional<EpochTable> table_;
  std::size_t live_lines_ = 0;
  std::optional<LiveSearch> search_;
  std::map<std::int64_t, std::vector<std::pair<std::string, std::string>>> params_;  // of trials
  Clock::time_point search_told_;
  Clock::time_point last_line_;
  bool is_finished_ = false;
  std::deque<Sample> samples_;
  std::jthread painter_;
};

}  // namespace treadle::cli

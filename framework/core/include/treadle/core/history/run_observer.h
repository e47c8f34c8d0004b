#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <treadle/base/component.h>
#include <treadle/base/epoch_summary.h>
#include <treadle/base/number.h>
#include <treadle/core/components/fit_id.h>

namespace treadle {

struct StepProgress {
  std::int64_t epoch = 0;  ///< from 1
  /// As planned; nothing: until something stops the training.
  std::optional<std::int64_t> epochs;
  std::int64_t step = 0;  ///< optimizer steps done, over all epochs
  /// As planned; nothing where it is not known.
  std::optional<std::int64_t> total_steps;
};

/// How a fit ended.
struct FitSummary {
  std::int64_t best_epoch = 0;  ///< from 1; 0: no weights were chosen
  std::int64_t epochs = 0;      ///< trained
  Number final_loss;            ///< validation loss, or training loss without validation rows
  Number best_loss;
  std::string stop_reason;  ///< empty: all epochs were trained
  std::vector<MetricValue> metrics;
  double seconds = 0;
};

/// How a trial of a search stands.
struct TrialSummary {
  std::int64_t number = 0;
  std::string state;  ///< "running", "paused", "complete", "pruned", "failed"
  std::vector<std::pair<std::string, std::string>> params;  ///< by path, as JSON
  std::vector<double> values;                               ///< objectives, of a complete one
  std::int64_t epochs = 0;                                  ///< it was compared after; 0: none
  std::string error;                                        ///< of a failed one
};

/// How a search stands.
struct SearchProgress {
  std::vector<std::string> objectives;
  std::int64_t trials = 0;  ///< planned at most
  std::int64_t running = 0;
  std::int64_t paused = 0;
  std::int64_t complete = 0;
  std::int64_t pruned = 0;
  std::int64_t failed = 0;
  std::int64_t best_trial = -1;  ///< of the complete ones; -1: there is none
  std::vector<double> best_values;
  double seconds = 0;                           ///< wall time so far, with that before a resume
  std::optional<double> budget = std::nullopt;  ///< of wall time, in seconds
};

/// Receives the events of a run; cannot change it. Calls come one at a time, in order per training,
/// never from within a step: on a dedicated thread of the run, soon after the event. Of a
/// training's steps only the newest is reported, a few times a second; nothing else is left out. An
/// observer that throws is reported once and not called again.
class RunObserver : public Component {
 public:
  static constexpr std::string_view kInterface = "treadle.observer/0";

  ~RunObserver() override;

  void run_started(const std::string& name, const std::string& folder);
  void fit_started(const FitId& fit);
  void step_completed(const FitId& fit, const StepProgress& progress);
  void epoch_completed(const FitId& fit, const EpochSummary& summary);
  void checkpoint_saved(const FitId& fit, const std::string& path);
  void fit_completed(const FitId& fit, const FitSummary& summary);
  /// A trial of a search has begun, goes on, is paused or has ended. Those that ended in an earlier
  /// process are only counted.
  void trial_changed(const TrialSummary& trial, const SearchProgress& search);
  /// A sentence a person should see: a choice that was made, a warning.
  void noted(const std::string& text);
  void run_completed(const std::string& folder);

 private:
  virtual void do_run_started(const std::string& name, const std::string& folder);
  virtual void do_fit_started(const FitId& fit);
  virtual void do_step_completed(const FitId& fit, const StepProgress& progress);
  virtual void do_epoch_completed(const FitId& fit, const EpochSummary& summary);
  virtual void do_checkpoint_saved(const FitId& fit, const std::string& path);
  virtual void do_fit_completed(const FitId& fit, const FitSummary& summary);
  virtual void do_trial_changed(const TrialSummary& trial, const SearchProgress& search);
  virtual void do_noted(const std::string& text);
  virtual void do_run_completed(const std::string& folder);
};

}  // namespace treadle

#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <treadle/core/distributed/communicator.h>
#include <treadle/core/history/run_observer.h>
#include <treadle/core/model/model.h>
#include <treadle/host/run/model_drawing.h>

namespace treadle {

/// Functions for the events of a run; null ones are not called. Called as the functions of a
/// RunObserver are: one at a time, on a thread of the run; one that throws is reported once and
/// none of them is called again.
struct RunHooks {
  std::function<void(const FitId& fit, const StepProgress& progress)> on_step;
  std::function<void(const FitId& fit, const EpochSummary& epoch)> on_epoch;
  std::function<void(const FitId& fit, const FitSummary& summary)> on_fit;
  std::function<void(const TrialSummary& trial, const SearchProgress& search)> on_trial;
  std::function<void(const std::string& text)> on_note;
};

struct RunOptions {
  /// Whether this process has the run's folder.
  bool is_first_rank() const { return communicator == nullptr || communicator->rank() == 0; }

  /// The run's folder is made in here: `<name>-<time>`.
  std::filesystem::path output = "runs";
  /// Once requested, the step in progress is finished and saved; the call then throws Interrupted.
  std::stop_token stop;
  /// Receive the events of the run, beside the observers in the document. Not owned.
  std::vector<RunObserver*> observers;
  RunHooks hooks;
  /// For resume_run() and continue_run(): go on although plugins, libtorch, BLAS, CPU, kind of
  /// device or data are not those the run began with.
  bool allow_differences = false;
  /// For resume_run(): a device in place of the one that the run began on, as documents name it.
  /// Empty: that one.
  std::string device;
  /// Note suspected leaks in the data before the training: takes up to a second.
  bool notes_leaks = false;
  /// Set by join_search(): another process has begun the search, and trains the best.
  bool joins = false;
  /// Connected: its processes train this run together, each with some of the shards of a step. That
  /// of rank 0 has the run's folder, its result, and the observers of the document; each other one
  /// keeps a private folder in `output`. Null: this process has all shards. Not owned.
  Communicator* communicator = nullptr;
  /// Threads, where the document leaves their number open; 0: the cores available.
  int workers = 0;
  /// Where to write a trace of all threads, however the run ends: Chrome's trace format. Empty:
  /// nowhere.
  std::filesystem::path trace;
  /// Bytes that the run may still take, or nothing for any number: trainings begin beside each
  /// other as far as they fit. Null: the limit of system and cgroups. Called on the run's
  /// threads, one call at a time; throws nothing.
  std::function<std::optional<std::int64_t>()> available_memory;
  /// Draws the trained model for the report; null, or an empty drawing, where it cannot be drawn.
  /// Called once, on a thread of the run; throws nothing.
  std::function<ModelDrawing(Model&)> draw_model;
};

}  // namespace treadle

#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/core/model.h>
#include <treadle/core/run_observer.h>
#include <treadle/host/catalog/workflow_document.h>
#include <treadle/host/run/report.h>
#include <treadle/host/run/runtime.h>

namespace treadle {

struct RunOptions {
  /// The run's folder is made in here: `<name>-<time>`.
  std::filesystem::path output = "runs";
  /// Once requested, the step in progress is finished and saved; the call then throws Interrupted.
  std::stop_token stop;
  /// Told what happens, beside the observers in the document. Not owned.
  std::vector<RunObserver*> observers;
  /// For resume_run() and continue_run(): go on although plugins, libtorch, BLAS, CPU, kind of
  /// device or data are not those the run began with.
  bool allow_differences = false;
  /// For resume_run(): a device in place of the one that the run began on, as documents name it.
  /// Empty: that one.
  std::string device;
  /// Set by join_search(): another process has begun the search, and trains the best.
  bool joins = false;
  /// Where to write a trace of all threads, however the run ends: Chrome's trace format. Empty:
  /// nowhere.
  std::filesystem::path trace;
  /// Bytes that the run may still take, or nothing for any number: trainings begin beside each
  /// other as far as they fit. Null: what system and cgroups have left. Called on the run's
  /// threads, one call at a time; throws nothing.
  std::function<std::optional<std::int64_t>()> available_memory;
  /// Draws the trained model for the report; null, or an empty drawing, where it cannot be drawn.
  /// Called once, on a thread of the run; throws nothing.
  std::function<ModelDrawing(Model&)> draw_model;
};

struct RunOutcome {
  std::filesystem::path folder;
  nlohmann::json result;  ///< what result.json holds
};

/// Trains, validates and reports: the whole of `workflow-runner run`. Writes the run folder; throws
/// a treadle::Error of the kind that fits.
RunOutcome run_workflow(const Runtime& runtime, const ResolvedWorkflow& workflow,
                        const RunOptions& options = {});

/// Continues a run that was stopped or killed, from its last good checkpoints; ends with the same
/// bits as a run that never stopped. A finished run is returned as it is.
RunOutcome resume_run(const Runtime& runtime, const std::filesystem::path& folder,
                      const RunOptions& options = {});

/// Trains a finished or stopped run further: a new run that begins with its weights and state. Its
/// document is that of the run `from` with `overrides`, as `--set` has them, which may change the
/// length of the training, stop conditions and rates; see "Training further" in
/// docs/guide/training.md. Further epochs give the bits of a single longer training, except where
/// something depends on the total number of epochs, such as a schedule. Throws UsageError for other
/// changes.
RunOutcome continue_run(const Runtime& runtime, const std::filesystem::path& from,
                        std::span<const std::string> overrides, const RunOptions& options = {});

/// Lets a search that has ended, or was stopped, go on: with so many more trials, and with this
/// time budget ("2h"; empty: as it was). resume_run() then does so; the model is trained again if
/// another trial is the best. Throws UsageError for a run that did not search.
void extend_search(const Runtime& runtime, const std::filesystem::path& run, std::int64_t trials,
                   const std::string& time);

/// What a process did that took part in the search of another one.
struct JoinedSearch {
  std::string study;
  std::int64_t jobs = 0;  ///< that it has done
};

/// Takes trials of a search that another process has begun in a storage, until that search has
/// ended: "sqlite:study.db", "journal:study.jsonl", "postgresql://host/database". `study` may be
/// empty where the storage has one only. Trials are kept in the folder of the other run where that
/// can be reached, so that any process goes on with what another has left; else in a temporary one.
/// Throws UsageError where there is no such study.
JoinedSearch join_search(const Runtime& runtime, const std::string& storage,
                         const std::string& study, const RunOptions& options = {});

/// Cancels a trial of a search, which may be running in another process: it ends with its epoch, or
/// before it begins, as a failed one. Throws UsageError for a run that does not search.
void cancel_trial(const std::filesystem::path& run, std::int64_t trial);

/// What history.csv of a run holds so far, by training; trend_of() (history.h) has its numbers by
/// name. Metrics have no direction there. Throws a StorageError for a file that was damaged.
std::vector<ReportInput::Curve> read_history(const std::filesystem::path& folder);

/// What `check` finds without reading data, beside what the document's schema says: parameters that
/// their component refuses, a schedule that needs the end of a training without one, a precision
/// that the device lacks, and expect_search(). Throws a DocumentError. Returns notes, which are no
/// problems: those of notes_on_search(), and that the precision is slow on the device. A
/// device on another machine is not checked.
std::vector<std::string> check_document(const Runtime& runtime, const ResolvedWorkflow& workflow);

/// What `check` finds in the document's `search`, without reading data: values of its space that no
/// document may have. Throws a DocumentError; nothing without a search.
void expect_search(const Runtime& runtime, const ResolvedWorkflow& workflow);

/// Notes of `check` and of a run on the document's `search`, which are no problems: a pruner
/// that cannot end a trial before its last epoch. Throws as expect_search(); nothing without a
/// search.
std::vector<std::string> notes_on_search(const Runtime& runtime, const ResolvedWorkflow& workflow);

/// The points of all trials of the document's `search` as far as no result decides on them: those
/// that it would try if none of its trials ended. Each has its values by path, as `search.initial`
/// takes them, and a "description" of them for readers. Fewer than trials where the tuner has no
/// more points. Reads no data. Throws as expect_search(); UsageError without a search.
nlohmann::json search_points(const Runtime& runtime, const ResolvedWorkflow& workflow);

/// What `check --dry-run` finds out: the data is read, one batch goes through everything, nothing
/// is written.
struct DryRun {
  nlohmann::json data;        ///< rows, inputs with shapes, target, class names, chosen task
  nlohmann::json model;       ///< parameters, output shape, parameter count
  nlohmann::json validation;  ///< folds with their sizes
  /// Null without a search: its space and first trials, how many trainings run at once, the memory
  /// of one, the time of a trial and of all, as the first trials take, and how many its budgets
  /// allow.
  nlohmann::json search = nullptr;
  std::int64_t estimated_bytes = 0;  ///< peak memory of the run above the process's baseline
  std::string device = {};           ///< that was used: "cpu", "cuda:0"
  /// Peak memory on a device that has its own; 0 on a CPU.
  std::int64_t estimated_device_bytes = 0;
};
DryRun dry_run(const Runtime& runtime, const ResolvedWorkflow& workflow);

/// The document's model as the training of its first fold would begin: made for its data and loss,
/// its weights drawn.
std::shared_ptr<Model> untrained_model(const Runtime& runtime, const ResolvedWorkflow& workflow);

/// The stages of a workflow as Graphviz source.
std::string stage_picture(const ResolvedWorkflow& workflow);

}  // namespace treadle

#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/core/model/model.h>
#include <treadle/host/catalog/workflow_document.h>
#include <treadle/host/record/run_result.h>
#include <treadle/host/record/training_curve.h>
#include <treadle/host/run/run_options.h>
#include <treadle/host/run/runtime.h>
#include <treadle/host/run/search.h>

namespace treadle {

struct RunOutcome {
  std::filesystem::path folder;
  RunResult result;
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

/// What history.csv of a run holds so far, by training; trend_of() (history.h) has its numbers by
/// name. Metrics have no direction there. Throws a StorageError for a file that was damaged.
std::vector<TrainingCurve> read_history(const std::filesystem::path& folder);

/// What `check` finds without reading data, beside what the document's schema says: parameters that
/// their component refuses, a schedule that needs the end of a training without one, a precision
/// that the device lacks, and expect_search(). Throws a DocumentError. Returns notes, which are no
/// problems: those of notes_on_search(), and that the precision is slow on the device. A
/// device on another machine is not checked.
std::vector<std::string> check_document(const Runtime& runtime, const ResolvedWorkflow& workflow);

/// What `check --dry-run` finds out: the data is read, one batch goes through everything, nothing
/// is written.
struct DryRun {
  nlohmann::json data;        ///< rows, inputs with shapes, target, class names, chosen task
  nlohmann::json model;       ///< parameters, output shape, parameter count
  nlohmann::json validation;  ///< folds with their sizes
  /// The names of the parameters of each rule of the optimizers, {"muon": ["layers.0.weight"]};
  /// null where none of them chooses between rules.
  nlohmann::json rules = nullptr;
  /// Null without a search: its space and first trials, how many trainings run at once, the memory
  /// of one, the time of a trial and of all, as the first trials take, and how many its budgets
  /// allow.
  nlohmann::json search = nullptr;
  /// Suspected leaks in the data, as sentences: see describe/suspicions.h.
  std::vector<std::string> suspicions = {};
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

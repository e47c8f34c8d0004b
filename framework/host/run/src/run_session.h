#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <treadle/core/timeline.h>
#include <treadle/engine/stage_graph.h>
#include <treadle/engine/thread_budget.h>
#include <treadle/engine/trials.h>
#include <treadle/host/run/run_folder.h>
#include <treadle/host/run/workflow_run.h>

#include "announcer.h"
#include "background_writer.h"
#include "ingredients.h"
#include "run_files.h"
#include "trial.h"

namespace treadle::internal {

/// One run, fresh or resumed, from its document to its report. The stages in stages() are its table
/// of contents.
class RunSession {
 public:
  RunSession(const Runtime& runtime, ResolvedWorkflow workflow, const RunOptions& options,
             RunFolder folder, bool resumed);
  ~RunSession();

  RunOutcome run();
  /// Whether any step was made.
  bool has_trained() const { return trained_; }

  /// The stages of a workflow. With a session they do its work; without one they only have names,
  /// for pictures.
  static engine::StageGraph stages(const ResolvedWorkflow& workflow, RunSession* session);

 private:
  /// What is kept of a finished training.
  struct Finished {
    nlohmann::json result;
    bool selects_best = false;
    std::vector<Metric> report_metrics;
  };
  class Context;

  void load_data();
  void split();
  void train_folds();
  void train_final();
  void write_result();

  bool has_single_model() const;
  std::vector<std::string> trial_names() const;
  /// `settled`, which may be null, hears when the training has taken its memory.
  Finished run_trial(TrialId id, TrialRows rows, bool is_result, const engine::Settled& settled);
  template <typename Work>
  static auto saying_where(const Context& context, Work&& work);
  template <typename Work>
  void saying_how_to_go_on(Work&& work) const;
  engine::TrainingResult train_keeping_what_is_saved(Trial& trial, Context& context);
  std::optional<Finished> finished_before(const TrialId& id);
  Finished finished_from(const StateDict& saved) const;
  /// Refuses to go on under other conditions than those that the run began with.
  void compare_with_beginning();
  void check_environment(const nlohmann::json& before);
  /// What checkpoints and records keep, so that nothing of another run is taken for this one's.
  StateDict marks_of_run(const std::string& history) const;
  /// Expects `state`, kept at `place`, to be of this run; puts its history back where it was lost.
  void recognize(const StateDict& state, const TrialId& id, const std::filesystem::path& place);
  void write_model(Trial& trial) const;
  nlohmann::json pooled_tables() const;
  /// Whether the run's model, or the first of its folds where it has none, is trained as `id`.
  bool is_shown(const TrialId& id) const;
  ModelDrawing drawing_of(Model& model) const;

  const std::int64_t baseline_memory_;
  const Runtime& runtime_;
  const RunOptions& options_;
  RunFolder folder_;
  const bool resumed_;
  Ingredients ingredients_;
  engine::ThreadBudget budget_;
  Timeline timeline_;
  HistoryFile history_;
  EventLog events_;
  std::vector<std::unique_ptr<RunObserver>> observers_;
  Audience audience_;
  Announcer announcer_;
  BackgroundWriter writer_;
  nlohmann::json environment_;
  nlohmann::json document_;  ///< see document_identity()
  std::vector<Finished> folds_;
  std::optional<Finished> final_;
  nlohmann::json model_info_;
  std::optional<nlohmann::json> result_;
  std::atomic<bool> trained_ = false;
};

}  // namespace treadle::internal

#pragma once

#include <cstdint>
#include <optional>

#include <nlohmann/json.hpp>

#include <treadle/engine/stage_graph.h>
#include <treadle/host/run/workflow_run.h>

#include "context/run_parts.h"
#include "ensemble/study_ensemble.h"
#include "fit/cross_validation.h"
#include "fit/fit_lender.h"
#include "search/study/study.h"

namespace treadle::internal {

/// One run, fresh or resumed, from its document to its report. The stages in stages() are its table
/// of contents.
class RunSession {
 public:
  RunSession(const Runtime& runtime, ResolvedWorkflow workflow, const RunOptions& options,
             RunFolder folder, bool resumed);

  RunOutcome run();
  /// Like run(), for the search of another process, which has the result: the number of jobs that
  /// this one has done.
  std::int64_t join();
  /// Whether any step was made.
  bool has_trained() const { return run_.has_trained; }
  /// Whether run() has failed with the last training of a search, and a session that resumes the
  /// run trains the next best trial.
  bool has_next_best() const { return is_repeated_ || (study_ && study_->has_next_best()); }

  /// The stages of a workflow. With a session they do its work; without one they only have names,
  /// for pictures.
  static engine::StageGraph stages(const ResolvedWorkflow& workflow, RunSession* session);

 private:
  void load_data();
  void split();
  void divide_work();
  void run_fits();
  void run_plan(FitLender* lender);
  void write_result();
  void note_ended_study();

  const std::int64_t baseline_memory_;
  RunParts run_;
  std::optional<SearchSettings> search_settings_;
  std::optional<CrossValidation> plan_;  // of a run without a search
  bool has_earlier_results_ = false;     // of the study, in its storage
  bool is_repeated_ = false;             // as rank 0 decides, which has the study
  std::optional<Study> study_;
  std::optional<StudyEnsemble> ensemble_;
  bool has_ended_ = false;
  RunResult result_;
};

}  // namespace treadle::internal

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "context/run_parts.h"
#include "fit/fit_planner.h"
#include "search/journal/study_history.h"
#include "search/journal/trial_files.h"
#include "search/settings/search_settings.h"
#include "search/study/job_sequence.h"
#include "search/study/study_record.h"
#include "search/study/study_trial.h"
#include "search/study/trial_plan.h"

namespace treadle::internal {

/// Runs the jobs of a study: JobSequence decides which trials train when, TrialPlan makes their
/// fits, StudyHistory has the ends of jobs.
///
/// A job: order() begins it -> its end is known, or its fits run -> reported(), paused(),
/// stopped(), completed(), failed() -> settle(), once no fit of it runs -> close(). With one fold
/// the pruner evaluates a trial while it trains. Of several folds it evaluates the mean, so all of
/// them pause first.
///
/// If processes share the study, a job belongs to the process that first has a free slot for it.
///
/// Events of fits are those of FitPlanner. Not thread-safe. Throws StorageError, and PluginError of
/// the tuner or pruner.
class TrialJobs {
 public:
  /// Borrows all of them.
  TrialJobs(RunParts& run, const SearchSettings& settings, const TrialPlan& plan,
            StudyHistory& history);

  /// Begins all jobs that may begin, and orders their fits. False: the study is over and no end is
  /// to come.
  bool order(FitPlanner::Orders& orders);
  bool begins(const FitId& fit);
  FitVerdict reported(const FitId& fit, const EpochSummary& epoch);
  void paused(const FitId& fit);
  void stopped(const FitId& fit);
  void completed(const FitId& fit, CompletedFit result);
  void failed(const FitId& fit, const Error& error);

  /// Reads the ends that other processes know, and prolongs the leases of this one.
  void poll();
  /// Limits the study to its first jobs if the history has an early end.
  void find_early_end();
  /// Paths of the fits that run although the study has ended. Those of a job that is a part of the
  /// study, for whose end there was no time, fail.
  std::vector<std::string> fits_to_stop();

  const JobSequence& sequence() const { return sequence_; }
  const std::vector<StudyTrial>& trials() const { return trials_; }
  const TrialFiles& files() const { return files_; }

 private:
  using Orders = FitPlanner::Orders;

  bool is_open(std::size_t job) const;
  void begin(const StudyJob& job);
  void train(StudyTrial& trial);
  bool find_end(StudyTrial& trial);
  bool takes(const StudyTrial& trial);
  void evaluate(StudyTrial& trial, std::int64_t epoch);
  bool evaluate_folds(StudyTrial& trial);
  StudyTrial& leave_slot(const FitId& id, TrialFit::State state);
  bool is_due(const StudyTrial& trial) const;
  void settle(StudyTrial& trial);
  void end(StudyTrial& trial, TrialState state);
  void close(StudyTrial& trial, const JobResult& result, bool is_new);
  void announce(const StudyTrial& trial);

  SharedStudy* shared() const { return history_.shared(); }
  bool is_lost(const StudyTrial& trial) const {
    return shared() != nullptr && shared()->is_lost(trial.job);
  }
  StudyTrial& trial_at(std::int64_t number) { return trials_[static_cast<std::size_t>(number)]; }
  const StudyTrial& trial_of_job(std::size_t job) const {
    return trials_[static_cast<std::size_t>(sequence_.trial_of(job))];
  }
  StudyTrial& trial_of(const FitId& fit);

  RunParts& run_;
  const SearchSettings& settings_;
  const TrialPlan& plan_;
  const Objectives& objectives_;
  StudyHistory& history_;
  JobSequence sequence_;
  const StudyRecord record_;
  TrialFiles files_;
  std::vector<StudyTrial> trials_;
  Orders ready_;  // for the next order()
};

}  // namespace treadle::internal

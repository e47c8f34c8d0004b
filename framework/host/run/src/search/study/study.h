#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "context/run_parts.h"
#include "fit/cross_validation.h"
#include "fit/fit_planner.h"
#include "search/budget/search_time.h"
#include "search/budget/time_budget.h"
#include "search/budget/training_times.h"
#include "search/journal/shared_study.h"
#include "search/journal/study_history.h"
#include "search/journal/study_journal.h"
#include "search/settings/search_settings.h"
#include "search/study/best_run.h"
#include "search/study/objectives.h"
#include "search/study/trial_jobs.h"
#include "search/study/trial_plan.h"

namespace treadle::internal {

/// The fits of a search: trials "trials/0", or "trials/0/fold-1" if there are folds, and then those
/// of an ordinary run with the document of the best trial, "final" among them: with the bits of
/// such a run.
///
/// TrialJobs trains the trials and BestRun is the last training. The trials, and which is the best,
/// are the same for any number of workers and after any stop, unless the search is asynchronous. A
/// trial whose training fails counts as failed, and does not fail the run.
///
/// If the search has a storage, other processes have a Study of the same jobs.
class Study final : public FitPlanner {
 public:
  /// `plan` has no inner folds, and validation rows. Borrows `run`, whose data is open. Continues
  /// the run's journal.
  Study(RunParts& run, SearchSettings settings, ValidationPlan plan);
  ~Study() override;

  Orders next() override;
  bool begins(const FitId& fit) override;
  FitVerdict reported(const FitId& fit, const EpochSummary& epoch) override;
  void paused(const FitId& fit) override;
  void stopped(const FitId& fit) override;
  void completed(const FitId& fit, CompletedFit result) override;
  bool failed(const FitId& fit, const Error& error) override;

  /// Whether tick() is to be called: the search has a time budget, or a storage.
  bool has_clock() const { return settings_.seconds || shared_; }
  struct Tick {
    std::vector<std::string> stop = {};  ///< paths of fits to stop
    bool has_orders = false;             ///< the runner must be woken
  };
  /// Ends the trials once the rest of the time budget is needed for the last training, and polls
  /// the storage. Must be called often: the search ends for the best
  /// trial that there is time for, not for one that is found too late. The next orders throw its
  /// errors.
  Tick tick();
  /// Bytes that the process may use. Nothing: without limit.
  std::optional<std::int64_t> memory_limit() const { return settings_.memory; }

  // For an ensemble, once trials have ended.
  /// The time for its members. The same after a resume, if the budget has ended the trials.
  /// Nothing: without limit.
  struct TimeOfMembers {
    double wall;     ///< the most for one of them
    double workers;  ///< seconds of one worker, for all of them
  };
  std::optional<TimeOfMembers> time_of_members() const;
  /// Whether the time budget is used up.
  bool is_out_of_time() const { return time_.left().value_or(1) <= 0; }
  /// Seconds of one worker for a member with this trial's document.
  double member_seconds(std::int64_t trial) const { return times_.of_member(trial); }
  /// Complete trials whose records are kept, ascending: of those that satisfy the constraints,
  /// unless the best one does not.
  std::vector<std::int64_t> candidates() const { return best_->candidates(jobs_.files().kept()); }
  /// Paths of a trial's fits.
  std::vector<std::string> names_of(std::int64_t trial) const { return plan_.names_of(trial); }
  std::shared_ptr<const ResolvedWorkflow> document_of(std::int64_t trial) const;

  // For the result of the run, once the plan has ended.
  /// Whether the last training has failed, and a resumed run trains the next best trial in its
  /// place.
  bool has_next_best() const { return best_ && best_->has_next_best(); }
  /// False if the process joined the search of another one, which trains the best.
  bool has_best_run() const { return best_.has_value(); }
  /// By this process.
  std::int64_t jobs_done() const { return shared_ ? shared_->finished() : 0; }
  const CrossValidation& best_run() const { return best_->fits(); }
  const ResolvedWorkflow& best_document() const { return best_->document(); }
  /// Paths of all fits, in order.
  std::vector<std::string> names() const;
  SearchResult record() const;

 private:
  double seconds_for_trials();
  void end_by_time();
  nlohmann::json ended() const;
  void begin_best(Orders& orders);
  std::optional<SearchTime::Clock::time_point> deadline_of_last() const;

  RunParts& run_;
  const SearchSettings settings_;
  const Objectives objectives_;
  const TrialPlan plan_;
  StudyJournal journal_;
  SearchTime time_;
  std::optional<SharedStudy> shared_;
  StudyHistory history_;
  TrialJobs jobs_;
  const TrainingTimes times_;
  TimeBudget budget_;
  std::optional<BestRun> best_;
  SearchTime::Clock::time_point next_poll_;
  std::exception_ptr failure_;  // of tick()
};

}  // namespace treadle::internal

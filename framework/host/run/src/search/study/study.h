#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/base/random.h>
#include <treadle/search/tuner.h>

#include "context/run_parts.h"
#include "fit/cross_validation.h"
#include "fit/fit_planner.h"
#include "search/budget/time_budget.h"
#include "search/budget/training_times.h"
#include "search/journal/shared_study.h"
#include "search/journal/study_journal.h"
#include "search/journal/trial_files.h"
#include "search/settings/search_settings.h"
#include "search/study/objectives.h"
#include "search/study/study_record.h"
#include "search/study/study_trial.h"

namespace treadle::internal {

/// The fits of a search: trials "trials/0", or "trials/0/fold-1" where there are folds, and then
/// those of an ordinary run with the document of the best one, "final" among them: with the bits of
/// such a run.
///
/// A study is a sequence of jobs: each starts a trial or goes on with a paused one, up to where it
/// completes, fails, is pruned or is paused again. Job n is decided once all jobs <= n - parallel
/// have ended, and sees their results alone, whatever else has ended by then; nor do its trial's
/// own judgements see more. So trials, and which is the best, are the same for any number of
/// workers and after any stop. Of equal trials the first is the best. A trial whose training fails
/// counts as failed and not as a failure of the run.
///
/// Where a search is asynchronous, a job sees whatever has ended when a worker is free for it.
///
/// Where it has a storage, other processes have a Study of the same search. Each decides on the
/// same jobs; who trains one is settled when a slot is free for its first fit. What the others have
/// done is learned by poll().
class Study final : public FitPlanner {
 public:
  /// `plan` has no inner folds, and validation rows. Borrows `run`, whose data is open. Goes on
  /// with what the run's journal has.
  Study(RunParts& run, SearchSettings settings, ValidationPlan plan);
  ~Study() override;

  Orders next() override;
  bool begins(const FitId& fit) override;
  FitVerdict reported(const FitId& fit, const EpochSummary& epoch) override;
  void paused(const FitId& fit) override;
  void stopped(const FitId& fit) override;
  void completed(const FitId& fit, CompletedFit result) override;
  bool failed(const FitId& fit, const Error& error) override;

  /// How long trials may still be trained, so that the last training ends with the time budget.
  /// Nothing: without limit, or they have ended. To be asked often: the search ends for the best
  /// trial that there was time for, and not for one that comes too late.
  std::optional<double> seconds_left();
  /// Once trials have ended, for the members of an ensemble. The same after a resume, where the
  /// budget has ended the trials. Nothing: without limit.
  struct TimeOfMembers {
    double wall;     ///< of which none may take more
    double workers;  ///< seconds of one worker, for all of them
  };
  std::optional<TimeOfMembers> time_of_members() const;
  /// Whether the time budget is used up.
  bool is_out_of_time() const;
  /// Seconds of one worker that a member with this trial's document takes.
  double member_seconds(std::int64_t trial) const { return times_.of_member(trial); }
  /// No job begins any more, and those that run are cut off: paths of the fits to stop. The study
  /// is then what its jobs before the first of these came to.
  std::vector<std::string> end_by_time();

  /// Seconds between two polls of the storage; nothing where there is none, or trials have ended.
  std::optional<double> poll_interval() const;
  /// Learns what other processes have done, and prolongs what this one has. Paths of fits to stop,
  /// as the study has ended. Afterwards the runner is to be woken.
  std::vector<std::string> poll();
  /// The next orders throw this.
  void fail(std::exception_ptr failure) { failure_ = std::move(failure); }

  /// Bytes that the process may use; nothing: as many as there are.
  std::optional<std::int64_t> memory_limit() const { return settings_.memory; }

  /// Whether the last training has failed, and a run that resumes trains the next best trial in
  /// its place.
  bool has_next_best() const { return has_next_best_; }

  // Once the plan has ended.
  /// False of a process that has joined the search of another one, which trains the best.
  bool has_best_run() const { return best_run_ != nullptr; }
  std::int64_t jobs_done() const { return jobs_done_; }
  const CrossValidation& best_run() const { return *best_run_; }
  const ResolvedWorkflow& best_document() const { return *best_document_; }
  /// Paths of all fits, in order.
  std::vector<std::string> names() const;
  /// Paths of a trial's fits.
  std::vector<std::string> names_of(std::int64_t trial) const;
  /// Complete trials whose records are kept, ascending: of those that keep the constraints, unless
  /// the best one does not. They may be members of an ensemble.
  std::vector<std::int64_t> candidates() const;
  std::shared_ptr<const ResolvedWorkflow> document_of(std::int64_t trial) const;
  SearchResult record() const;

 private:
  using Clock = std::chrono::steady_clock;
  using Trials = std::vector<Trial>;

  enum class Owner { kNobody, kThis, kAnother };
  struct Job {
    std::int64_t trial = 0;
    Owner owner = Owner::kNobody;  // where there is a storage
    bool has_ended = false;
    /// It ended so in this process, but another one had taken it over.
    std::optional<TrialState> ended_late;
    double seconds = 0;                  // of one worker, in this process
    std::shared_ptr<const Trials> seen;  ///< for judgements
  };

  void open_storage();
  [[noreturn]] void fail_without_folder(const std::string& folder) const;
  StudyView view_of(const Trials& trials) const;
  bool may_start() const;
  /// The last trials brought no new best.
  bool has_lost_patience() const;
  bool begin_job(Orders& orders);
  bool see_jobs(std::size_t count);
  void see(const Job& job);
  bool start_trial(const NextJob& job, Orders& orders);
  std::optional<Point> point_of(std::int64_t number, const NextJob& job);
  void go_on_with(std::int64_t number, Orders& orders);
  void run_job(std::int64_t number, Orders& orders);
  bool ended_before(std::int64_t number);
  bool ended_elsewhere(std::int64_t number);
  bool publish(const StudyTrial& trial, TrialState state, double seconds);
  bool copies_are_made_of(const StudyTrial& trial) const;
  bool is_settled(std::size_t job) const;
  std::vector<std::string> cut_off(std::size_t jobs);
  void make_training(StudyTrial& trial);
  void order_fits(StudyTrial& trial, Orders& orders);

  PrunerVerdict judge(StudyTrial& trial, std::int64_t epoch);
  PrunerVerdict judge_folds(StudyTrial& trial);
  bool is_to_be_judged(const StudyTrial& trial) const;
  void leaves_slot(const StudyTrial& trial, TrialFit& fit, TrialFit::State state);
  void settle(StudyTrial& trial);
  void settle_completed(StudyTrial& trial);
  void end_job(StudyTrial& trial, TrialState state);
  void close_job(StudyTrial& trial, TrialState state, double seconds, bool is_news);
  void tell(const StudyTrial& trial);

  void end_without_work(std::int64_t number, TrialState state);
  void note_elapsed();
  Trials newest_trials() const;
  std::size_t give_up_before(std::size_t jobs, std::int64_t best, std::vector<std::string>& fits);

  std::optional<std::int64_t> chosen_trial() const;
  void last_training_failed(const Error& error);
  void begin_best(Orders& orders);
  std::optional<Clock::time_point> deadline_of_last() const;

  StudyTrial& trial_at(std::int64_t number) { return trials_[static_cast<std::size_t>(number)]; }
  const StudyTrial& trial_at(std::int64_t number) const {
    return trials_[static_cast<std::size_t>(number)];
  }
  StudyTrial& trial_of(const FitId& fit);
  TrialFit& fit_of(StudyTrial& trial, const FitId& fit);
  FitId id_of(std::int64_t number) const;
  double elapsed() const;

  RunParts& run_;
  const SearchSettings settings_;
  const ValidationPlan plan_;
  const RandomStreams random_;
  const Objectives objectives_;
  const Clock::time_point begun_ = Clock::now();
  StudyJournal journal_;
  std::optional<SharedStudy> shared_;
  bool is_joined_ = false;  // another process made the study, and trains the best
  std::exception_ptr failure_;
  std::int64_t jobs_done_ = 0;  // by this process

  std::vector<StudyTrial> trials_;
  const StudyRecord record_{settings_, objectives_};
  const TrainingTimes times_;
  TimeBudget budget_;
  TrialFiles files_;
  std::vector<Job> jobs_;
  std::size_t seen_ = 0;            // jobs whose results decisions see; any, where asynchronous
  Trials shown_;                    // the trials as the next decision sees them
  Orders ready_;                    // for the next orders
  std::optional<std::size_t> end_;  // jobs of the study, where it was ended early
  bool is_over_ = false;            // no job begins any more
  bool is_exhausted_ = false;       // the tuner has no more points
  nlohmann::json ended_;            // why
  double noted_elapsed_ = 0;        // in the journal
  std::int64_t best_ = -1;
  bool has_next_best_ = false;
  std::shared_ptr<const ResolvedWorkflow> best_document_;
  std::unique_ptr<CrossValidation> best_run_;
};

}  // namespace treadle::internal

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
#include <treadle/core/tuner.h>

#include "search/objectives.h"
#include "search/search_settings.h"
#include "search/shared_study.h"
#include "search/study_journal.h"
#include "session/cross_validation.h"
#include "session/fit_planner.h"
#include "session/run_parts.h"

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
  void completed(const FitId& fit, FitResult result) override;
  bool failed(const FitId& fit, const std::string& why) override;

  /// How long trials may still be trained, so that the last training ends with the time budget.
  /// Nothing: without limit, or they have ended.
  std::optional<double> seconds_left() const;
  /// What a training of this trial took, of one fold: it shared the machine with others.
  double fit_seconds(std::int64_t trial) const;
  /// Once trials have ended: what trainings of members may take, added up over all workers, so that
  /// they end with the time budget. Nothing: without limit. The same after a resume, where the
  /// budget has ended the trials.
  std::optional<double> seconds_for_members() const;
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
  /// Those whose records are kept, ascending.
  std::vector<std::int64_t> kept_trials() const;
  std::shared_ptr<const ResolvedWorkflow> document_of(std::int64_t trial) const;
  /// For result.json.
  nlohmann::json record() const;

 private:
  using Clock = std::chrono::steady_clock;
  using Trials = std::vector<treadle::Trial>;

  /// One training of a trial: of a fold.
  struct TrialFit {
    enum class State { kWaiting, kRunning, kPaused, kEnded };
    PlannedFit planned;
    State state = State::kWaiting;
    bool is_known = false;  ///< to the runner
    std::vector<IntermediateValue> values = {};
  };
  /// What a trial has while it may still be trained.
  struct Training {
    std::unique_ptr<CrossValidation> folds;
    std::vector<TrialFit> fits;
  };
  struct Trial {
    treadle::Trial now;       ///< as it is, and not as decisions may see it
    std::string error;        ///< of a failed one
    std::size_t failed_fold;  ///< the first that has one
    std::size_t jobs = 0;     ///< of it, so far
    std::int64_t job = 0;     ///< the newest
    double seconds = 0;       ///< wall time of its jobs
    std::int64_t judged = 0;  ///< the last epoch it was judged after
    /// Values that it took over with the weights of another trial.
    std::vector<IntermediateValue> inherited = {};
    std::optional<std::int64_t> next_judged;
    std::optional<PrunerVerdict> verdict;  ///< that ends its job
    bool is_cut_off = false;
    bool is_cancelled = false;
    std::optional<Training> training;
  };
  enum class Owner { kNobody, kThis, kAnother };
  struct Job {
    std::int64_t trial = 0;
    Owner owner = Owner::kNobody;  // where there is a storage
    bool has_begun = false;        // a fit of it, in this process
    bool has_ended = false;
    /// It ended so in this process, but another one had taken it over.
    std::optional<TrialState> ended_late;
    Clock::time_point begun;
    std::shared_ptr<const Trials> seen;  ///< for judgements
  };

  void open_storage();
  [[noreturn]] void fail_without_folder(const std::string& folder) const;
  StudyView view_of(const Trials& trials) const;
  bool may_start() const;
  bool begin_job(Orders& orders);
  bool see_jobs(std::size_t count);
  void see(const Job& job);
  bool start_trial(const NextJob& job, Orders& orders);
  std::optional<Point> point_of(std::int64_t number, const NextJob& job);
  void prune(std::int64_t number);
  void go_on_with(std::int64_t number, Orders& orders);
  void run_job(std::int64_t number, Orders& orders);
  bool ended_before(std::int64_t number);
  bool ended_elsewhere(std::int64_t number);
  bool publish(const Trial& trial, TrialState state, double seconds);
  bool has_running_fit(const Trial& trial) const;
  bool copies_are_made_of(const Trial& trial) const;
  bool is_settled(std::size_t job) const;
  std::vector<std::string> cut_off(std::size_t jobs);
  void make_training(Trial& trial);
  void order_fits(Trial& trial, Orders& orders);
  std::optional<std::int64_t> best_paused() const;

  PrunerVerdict judge(Trial& trial, std::int64_t epoch);
  PrunerVerdict judge_folds(Trial& trial);
  bool is_to_be_judged(const Trial& trial) const;
  void put_values_together(Trial& trial);
  void settle(Trial& trial);
  void settle_completed(Trial& trial);
  void end_job(Trial& trial, TrialState state);
  void close_job(Trial& trial, TrialState state, double seconds, bool is_news);
  void tell(const Trial& trial);
  void keep_files_of_best(const Trial& trial);
  void remove_files(std::int64_t number, bool keeps_result);
  bool is_cancelled(std::int64_t number) const;

  void end_search(const std::string& reason, const std::string& text);
  void begin_best(Orders& orders);
  std::int64_t choose_best() const;
  double last_seconds(std::int64_t best) const;
  double times_longer(const Trial& trial) const;
  double seconds_of_members() const;
  std::vector<std::int64_t> pareto_front() const;

  Trial& trial_of(const FitId& fit);
  TrialFit& fit_of(Trial& trial, const FitId& fit);
  FitId id_of(std::int64_t number) const;
  double elapsed() const;
  std::vector<double> in_document(const std::vector<double>& values) const;

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

  std::vector<Trial> trials_;
  std::vector<Job> jobs_;
  std::size_t seen_ = 0;            // jobs whose results decisions see; any, where asynchronous
  Trials shown_;                    // the trials as the next decision sees them
  std::vector<std::int64_t> kept_;  // complete trials whose weights are kept, the best first
  Orders ready_;                    // for the next orders
  std::optional<std::size_t> end_;  // jobs of the study, where it was ended early
  bool is_over_ = false;            // no job begins any more
  bool is_exhausted_ = false;       // the tuner has no more points
  nlohmann::json ended_;            // why
  std::int64_t best_ = -1;
  std::shared_ptr<const ResolvedWorkflow> best_document_;
  std::unique_ptr<CrossValidation> best_run_;
};

}  // namespace treadle::internal

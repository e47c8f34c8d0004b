#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include <treadle/base/random.h>
#include <treadle/search/pruner.h>
#include <treadle/search/tuner.h>

#include "search/settings/search_settings.h"
#include "search/study/study_end.h"

namespace treadle::internal {

/// One job of a study.
struct StudyJob {
  enum class Kind {
    kStart,   ///< trains a new trial
    kResume,  ///< trains a paused trial further
    kPrune,   ///< ends a paused trial, without training
    kCancel   ///< the same, at a user's request
  };
  std::int64_t number = 0;  ///< from 0
  std::int64_t trial = 0;
  Kind kind = Kind::kStart;

  bool trains() const { return kind == Kind::kStart || kind == Kind::kResume; }
};

/// The jobs of a study: which comes next, which results its decision sees, and when the study is
/// over.
///
/// Completion order is not deterministic, so no decision may depend on it. Job n is decided once
/// all jobs <= n - parallel have ended, and sees only their results; a pruner that waits gets
/// another call with one result more. A trial's verdicts see the trials as they were when its job
/// began. A trial resumes only after the end of its last job is visible, so a visible trial is
/// always as it was at the end of a job. An asynchronous study differs: its decisions see every end
/// at once.
///
/// A function of the settings, of the answers of tuner and pruner, and of the results passed to
/// end(): no files, no clock. A resumed run makes a new sequence and passes the known results
/// again. Not thread-safe. Throws PluginError, as tuner and pruner do.
class JobSequence {
 public:
  using Trials = std::vector<Trial>;
  /// Whether this job cancels this paused trial.
  using CancelQuery = std::function<bool(std::int64_t trial, std::int64_t job)>;

  /// `known` are the points of trials that an earlier process started; the tuner suggests the
  /// others. Borrows `settings`.
  JobSequence(const SearchSettings& settings, const RandomStreams& random, bool maximizes,
              std::vector<Point> known = {});

  /// Begins the next job. Nothing: it needs the result of a running job first, or is_over().
  std::optional<StudyJob> next(const CancelQuery& is_cancelled = nullptr);
  /// Ends a job that has begun; `trial` is the state after it.
  void end(std::int64_t job, Trial trial);
  /// Limits the study to its first `jobs` jobs.
  void end_after(std::size_t jobs) { limit_ = jobs; }

  /// Whether no job begins any more. Jobs may still run only if end_after() was called.
  bool is_over() const { return reason_.has_value() || (limit_ && jobs_.size() >= *limit_); }
  /// Why a study ended that has no limit. Expects that it is over.
  EndReason end_reason() const { return reason_.value(); }
  /// Whether a job is a part of the study, or is behind its limit.
  bool counts(std::int64_t job) const { return !limit_ || static_cast<std::size_t>(job) < *limit_; }

  /// The next epoch after which the pruner evaluates a trial.
  std::optional<std::int64_t> next_evaluation(std::int64_t trial, std::int64_t after) const;
  /// The pruner's verdict on the trial of a running job, as it is now.
  PrunerVerdict evaluate(std::int64_t job, const Trial& now) const;

  std::size_t size() const { return jobs_.size(); }
  std::int64_t trial_of(std::size_t job) const { return jobs_[job].begun.trial; }
  bool has_ended(std::size_t job) const { return jobs_[job].result.has_value(); }
  /// How many jobs have ended before the first, from `begin` on, that has not.
  std::size_t ended_from(std::size_t begin) const;

  /// The trials as the next decision sees them.
  const Trials& trials() const { return visible_; }
  /// The same with every end, visible or not.
  Trials newest_trials() const;
  /// The trials of a study that is over, as its jobs up to the limit have left them. An
  /// asynchronous study includes later ends, as its decisions do.
  Trials final_trials() const;

 private:
  /// A snapshot for verdicts.
  struct View {
    Trials trials;
    bool may_start = false;
  };
  struct Job {
    StudyJob begun;
    View view;                    // of a running one, if there is a pruner
    std::optional<Trial> result;  // once it has ended
  };

  StudyView view_of(const Trials& trials, bool may_start) const;
  bool may_start() const;
  bool has_lost_patience() const;
  bool show(std::size_t count);
  void show_job(const Job& job);
  std::size_t running() const;
  std::optional<std::int64_t> cancelled_trial(const CancelQuery& is_cancelled) const;
  std::optional<StudyJob> decide(const CancelQuery& is_cancelled);
  std::optional<Point> point_of(std::int64_t number, const NextJob& next) const;
  std::optional<StudyJob> start_trial(const NextJob& next);
  StudyJob begin(std::int64_t trial, StudyJob::Kind kind);
  StudyJob resume(std::int64_t trial);

  const SearchSettings& settings_;
  const RandomStreams random_;
  const bool maximizes_;
  const std::vector<Point> known_;
  std::vector<Job> jobs_;
  std::size_t shown_ = 0;  // jobs whose results are visible; more, if asynchronous
  Trials visible_;
  bool is_exhausted_ = false;  // the tuner has no more points
  std::optional<std::size_t> limit_;
  std::optional<EndReason> reason_;
};

}  // namespace treadle::internal

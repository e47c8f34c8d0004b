#include "search/study/job_sequence.h"

#include <algorithm>
#include <utility>

#include "search/settings/initial_points.h"
#include "search/study/best_trials.h"

namespace treadle::internal {

JobSequence::JobSequence(const SearchSettings& settings, const RandomStreams& random,
                         bool maximizes, std::vector<Point> known)
    : settings_(settings), random_(random), maximizes_(maximizes), known_(std::move(known)) {}

StudyView JobSequence::view_of(const Trials& trials, bool may_start) const {
  return {.trials = trials,
          .max_trials = settings_.trials,
          .may_start = may_start,
          .maximizes = maximizes_,
          .space = &settings_.space,
          .random = &random_};
}

bool JobSequence::may_start() const {
  return !is_exhausted_ && static_cast<std::int64_t>(visible_.size()) < settings_.trials &&
         !has_lost_patience();
}

/// The last trials brought no new best.
bool JobSequence::has_lost_patience() const {
  return settings_.patience && trials_since_best(visible_) >= *settings_.patience;
}

std::optional<std::int64_t> JobSequence::next_evaluation(std::int64_t trial,
                                                         std::int64_t after) const {
  return settings_.pruner ? settings_.pruner->next_step(trial, after) : std::nullopt;
}

PrunerVerdict JobSequence::evaluate(std::int64_t job, const Trial& now) const {
  const View& view = jobs_[static_cast<std::size_t>(job)].view;
  return settings_.pruner->judge(now, settings_.asynchronous
                                          ? view_of(visible_, may_start())
                                          : view_of(view.trials, view.may_start));
}

std::size_t JobSequence::ended_from(std::size_t begin) const {
  while (begin < jobs_.size() && has_ended(begin))
    ++begin;
  return begin;
}

void JobSequence::show_job(const Job& job) {
  visible_[static_cast<std::size_t>(job.begun.trial)] = *job.result;
}

/// Whether decisions now see the first `count` jobs.
bool JobSequence::show(std::size_t count) {
  for (; shown_ < count; ++shown_) {
    if (shown_ == jobs_.size() || !has_ended(shown_))
      return false;
    show_job(jobs_[shown_]);
  }
  return true;
}

std::size_t JobSequence::running() const {
  return static_cast<std::size_t>(std::count_if(
      jobs_.begin(), jobs_.end(), [](const Job& job) { return !job.result.has_value(); }));
}

std::optional<StudyJob> JobSequence::next(const CancelQuery& is_cancelled) {
  if (is_over())
    return std::nullopt;
  const auto parallel = static_cast<std::size_t>(settings_.parallel);
  if (settings_.asynchronous) {
    if (running() >= parallel)
      return std::nullopt;
  } else if (jobs_.size() >= parallel && !show(jobs_.size() - parallel + 1)) {
    return std::nullopt;
  }
  return decide(is_cancelled);
}

std::optional<StudyJob> JobSequence::decide(const CancelQuery& is_cancelled) {
  for (;;) {
    if (const auto cancelled = cancelled_trial(is_cancelled))
      return begin(*cancelled, StudyJob::Kind::kCancel);
    const NextJob next =
        settings_.pruner ? settings_.pruner->next_job(view_of(visible_, may_start())) : NextJob();
    if (next.kind == NextJob::Kind::kResume)
      return resume(next.trial);
    if (next.kind == NextJob::Kind::kPrune)
      return begin(next.trial, StudyJob::Kind::kPrune);
    if (next.kind == NextJob::Kind::kStart && may_start()) {
      if (const std::optional<StudyJob> job = start_trial(next))
        return job;
      continue;  // the tuner had no more points, which the pruner may take into account
    }
    if (settings_.asynchronous ? running() > 0 : shown_ < jobs_.size()) {
      if (settings_.asynchronous || !show(shown_ + 1))
        return std::nullopt;
      continue;
    }
    // Nothing runs any more. A search ends with a trial that was trained to its end, if one can be.
    const std::optional<std::int64_t> paused = best_paused(visible_);
    if (paused && std::none_of(visible_.begin(), visible_.end(), is_complete))
      return resume(*paused);
    reason_ = static_cast<std::int64_t>(visible_.size()) >= settings_.trials ? EndReason::kTrials
              : has_lost_patience()                                          ? EndReason::kPatience
              : is_exhausted_                                                ? EndReason::kSpace
                                                                             : EndReason::kPruner;
    return std::nullopt;
  }
}

std::optional<std::int64_t> JobSequence::cancelled_trial(const CancelQuery& is_cancelled) const {
  if (!is_cancelled)
    return std::nullopt;
  const auto job = static_cast<std::int64_t>(jobs_.size());
  const auto cancelled = std::find_if(visible_.begin(), visible_.end(), [&](const Trial& trial) {
    return trial.state == TrialState::kPaused && is_cancelled(trial.number, job);
  });
  return cancelled != visible_.end() ? std::optional(cancelled->number) : std::nullopt;
}

std::optional<Point> JobSequence::point_of(std::int64_t number, const NextJob& next) const {
  if (number < static_cast<std::int64_t>(known_.size()))
    return known_[static_cast<std::size_t>(number)];
  return next.point ? next.point
                    : point_of_trial(settings_.space, *settings_.tuner, settings_.initial, visible_,
                                     number, random_);
}

std::optional<StudyJob> JobSequence::start_trial(const NextJob& next) {
  const auto number = static_cast<std::int64_t>(visible_.size());
  std::optional<Point> point = point_of(number, next);
  if (!point) {
    is_exhausted_ = true;
    return std::nullopt;
  }
  Trial fresh;
  fresh.number = number;
  fresh.point = *std::move(point);
  fresh.is_suggested = !next.point && static_cast<std::size_t>(number) >= settings_.initial.size();
  if (next.trial >= 0) {  // its epochs are those of the other trial so far
    fresh.copied_from = next.trial;
    fresh.intermediate = visible_[static_cast<std::size_t>(next.trial)].intermediate;
  }
  visible_.push_back(std::move(fresh));
  return begin(number, StudyJob::Kind::kStart);
}

StudyJob JobSequence::resume(std::int64_t trial) {
  visible_[static_cast<std::size_t>(trial)].state = TrialState::kRunning;
  return begin(trial, StudyJob::Kind::kResume);
}

StudyJob JobSequence::begin(std::int64_t trial, StudyJob::Kind kind) {
  const auto number = static_cast<std::int64_t>(jobs_.size());
  Job& job = jobs_.emplace_back();
  job.begun = {number, trial, kind};
  if (settings_.pruner && job.begun.trains())
    job.view = {visible_, may_start()};
  return job.begun;
}

void JobSequence::end(std::int64_t number, Trial trial) {
  Job& job = jobs_[static_cast<std::size_t>(number)];
  job.result = std::move(trial);
  job.view = {};
  // Every process ends a job without training by itself, at once.
  if (settings_.asynchronous || !job.begun.trains())
    show_job(job);
}

JobSequence::Trials JobSequence::newest_trials() const {
  Trials newest = visible_;
  for (std::size_t job = shown_; job < jobs_.size() && !settings_.asynchronous; ++job) {
    if (has_ended(job))
      newest[static_cast<std::size_t>(trial_of(job))] = *jobs_[job].result;
  }
  return newest;
}

JobSequence::Trials JobSequence::final_trials() const {
  Trials trials;
  for (const Job& job : jobs_) {
    const auto index = static_cast<std::size_t>(job.begun.trial);
    if (!counts(job.begun.number))
      break;
    if (job.begun.kind == StudyJob::Kind::kStart)
      trials.push_back(visible_[index]);
    if (job.result)
      trials[index] = *job.result;
  }
  if (settings_.asynchronous)
    trials = visible_;
  while (!trials.empty() && trials.back().state == TrialState::kRunning &&
         trials.back().intermediate.empty())
    trials.pop_back();
  for (Trial& trial : trials) {
    if (trial.state == TrialState::kRunning)
      trial.state = TrialState::kPaused;
  }
  return trials;
}

}  // namespace treadle::internal

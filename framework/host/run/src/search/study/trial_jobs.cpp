#include "search/study/trial_jobs.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <treadle/base/error.h>

#include "search/settings/initial_points.h"
#include "store/trial_paths.h"

namespace treadle::internal {

TrialJobs::TrialJobs(RunParts& run, const SearchSettings& settings, const TrialPlan& plan,
                     StudyHistory& history)
    : run_(run),
      settings_(settings),
      plan_(plan),
      objectives_(plan.objectives()),
      history_(history),
      sequence_(settings, streams_of_search(run.workflow()), objectives_.maximizes(0),
                history.journal().points()),
      record_(settings, objectives_),
      files_(run.folder, settings.keep) {
  find_early_end();
}

bool TrialJobs::order(Orders& orders) {
  // Processes that share a study would not cancel a paused trial at the same job: there it ends
  // once it resumes.
  JobSequence::CancelQuery is_cancelled;
  if (shared() == nullptr && files_.any_is_cancelled()) {
    is_cancelled = [this](std::int64_t trial, std::int64_t job) {
      return files_.is_cancelled(trial) &&
             history_.journal().may_cancel(trial, trial_at(trial).jobs, job);
    };
  }
  while (const std::optional<StudyJob> job = sequence_.next(is_cancelled))
    begin(*job);
  orders = std::exchange(ready_, {});
  for (std::size_t job = 0; job < sequence_.size(); ++job) {
    if (is_open(job))
      return true;
  }
  return !sequence_.is_over();
}

/// Whether an end of a job is to come.
bool TrialJobs::is_open(std::size_t job) const {
  const StudyTrial& trial = trial_of_job(job);
  if (sequence_.has_ended(job) || trial.stage == JobStage::kInterrupted)
    return false;
  return sequence_.counts(trial.job) || trial.has_running_fit();
}

// A job begins.

void TrialJobs::begin(const StudyJob& job) {
  if (job.kind == StudyJob::Kind::kStart) {
    const Trial& fresh = sequence_.trials()[static_cast<std::size_t>(job.trial)];
    StudyTrial& trial = trials_.emplace_back();
    trial.now = fresh;
    trial.inherited = fresh.intermediate;
    if (fresh.copied_from)
      trial.evaluated = trial_at(*fresh.copied_from).evaluated;
    history_.journal().started(job.trial, fresh.point);
  }
  StudyTrial& trial = trial_at(job.trial);
  trial.stage.begin();
  trial.job = job.number;
  trial.job_seconds = 0;
  if (job.trains()) {
    trial.now.state = TrialState::kRunning;
    trial.next_evaluation = sequence_.next_evaluation(job.trial, trial.evaluated);
  }
  if (find_end(trial))
    return;
  if (job.trains())
    return train(trial);
  const bool is_cancelled = job.kind == StudyJob::Kind::kCancel;
  trial.error = is_cancelled ? kCancelled : "";
  const JobResult result = trial.result(is_cancelled ? TrialState::kFailed : TrialState::kPruned);
  history_.end_untrained(job.number, result);
  close(trial, result, /*is_new=*/true);
}

/// Ends the newest job of a trial if its end is known.
bool TrialJobs::find_end(StudyTrial& trial) {
  if (trial.has_running_fit())
    return false;
  const auto end = history_.find_end(trial);
  if (end)
    close(trial, end->result, end->is_new);
  return end.has_value();
}

void TrialJobs::train(StudyTrial& trial) {
  if (files_.is_cancelled(trial.now.number)) {
    trial.stage.advance(JobStage::kCancelling);
    return settle(trial);
  }
  try {
    if (!trial.training)
      trial.training = plan_.training_of(trial);
  } catch (const DocumentError& error) {  // ends of ranges do, but not these values together
    trial.fail(error.what());
    return settle(trial);
  }
  trial.training->order(ready_);
  announce(trial);
}

bool TrialJobs::begins(const FitId& id) {
  StudyTrial& trial = trial_of(id);
  TrialFit& fit = trial.training->fit(id);
  if (shared() != nullptr && !takes(trial)) {
    fit.state = TrialFit::State::kPaused;
    return false;
  }
  fit.slot = TrialFit::Slot{SearchTime::Clock::now()};
  return true;
}

/// Whether the newest job of a trial belongs to this process, now that a slot is free for it.
bool TrialJobs::takes(const StudyTrial& trial) {
  if (!shared()->is_own(trial.job) && sequence_.counts(trial.job)) {
    if (!plan_.copies_are_made(trial, trials_) || !shared()->claim(trial.job))
      shared()->leave(trial.job);
  }
  return shared()->is_own(trial.job);
}

// Its fits run.

StudyTrial& TrialJobs::trial_of(const FitId& fit) {
  return trial_at(trial_in_path(fit.path()).value());
}

FitVerdict TrialJobs::reported(const FitId& id, const EpochSummary& epoch) {
  StudyTrial& trial = trial_of(id);
  TrialFit& fit = trial.training->fit(id);
  const bool is_due = trial.is_due_after(epoch.epoch);
  const bool is_alone = trial.training->fits.size() == 1;
  if (trial.report(fit, epoch, objectives_.value_after(epoch)) && is_alone)
    history_.journal().reported(trial.now.number, trial.now.intermediate.back());
  // Another process has taken this job over. A verdict that is due is given all the same: should
  // the job come back to this process, the trial resumes behind this epoch, or ends with it.
  const FitVerdict otherwise = is_lost(trial) ? FitVerdict::kPause : FitVerdict::kContinue;
  if (!is_lost(trial) && files_.is_cancelled(trial.now.number)) {
    trial.stage.advance(JobStage::kCancelling);
    return FitVerdict::kStop;
  }
  if (!is_due || fit.values.empty())
    return otherwise;
  if (!is_alone)
    return FitVerdict::kPause;
  if (!fit.values.back().value)  // an undefined value prunes nothing
    return otherwise;
  evaluate(trial, epoch.epoch);
  if (trial.stage == JobStage::kTraining)
    return otherwise;
  return trial.stage == JobStage::kPausing ? FitVerdict::kPause : FitVerdict::kStop;
}

void TrialJobs::evaluate(StudyTrial& trial, std::int64_t epoch) {
  trial.evaluated = epoch;
  switch (sequence_.evaluate(trial.job, trial.now)) {
    case PrunerVerdict::kContinue:
      trial.next_evaluation = sequence_.next_evaluation(trial.now.number, epoch);
      return;
    case PrunerVerdict::kPause:
      return trial.stage.advance(JobStage::kPausing);
    case PrunerVerdict::kPrune:
      return trial.stage.advance(JobStage::kPruning);
  }
}

/// The trial of a fit that has left its slot.
StudyTrial& TrialJobs::leave_slot(const FitId& id, TrialFit::State state) {
  StudyTrial& trial = trial_of(id);
  TrialFit& fit = trial.training->fit(id);
  fit.state = state;
  if (const auto slot = std::exchange(fit.slot, std::nullopt)) {
    trial.job_seconds +=
        std::chrono::duration<double>(SearchTime::Clock::now() - slot->since).count();
  }
  return trial;
}

void TrialJobs::paused(const FitId& id) {
  settle(leave_slot(id, TrialFit::State::kPaused));
}

void TrialJobs::stopped(const FitId& id) {
  StudyTrial& trial = leave_slot(id, TrialFit::State::kPaused);
  trial.stage.advance(JobStage::kInterrupted);
  settle(trial);
}

void TrialJobs::completed(const FitId& id, CompletedFit result) {
  StudyTrial& trial = leave_slot(id, TrialFit::State::kEnded);
  trial.training->folds->completed(id, std::move(result));
  settle(trial);
}

void TrialJobs::failed(const FitId& id, const Error& error) {
  StudyTrial& trial = leave_slot(id, TrialFit::State::kEnded);
  trial.fail(error.what(), trial.training->fold_of(id));
  settle(trial);
}

// Its end.

/// Whether all that the newest job of a trial trains is there for a verdict, or its end.
bool TrialJobs::is_due(const StudyTrial& trial) const {
  return trial.stage > JobStage::kInterrupted ||
         trial.training->have_all_reached(trial.next_evaluation.value_or(TrialTraining::kNever));
}

/// Ends the newest job of a trial once none of its fits runs.
void TrialJobs::settle(StudyTrial& trial) {
  if (trial.training) {
    // Of folds that follow one another, the next begins.
    if (trial.stage == JobStage::kTraining && trial.training->any_is(TrialFit::State::kWaiting))
      trial.training->order(ready_);
    if (trial.has_running_fit())
      return;
    trial.now.intermediate = mean_of_folds(trial.training->fits);
  }
  if (is_lost(trial) && (find_end(trial) || !is_due(trial)))
    return;
  if (trial.stage == JobStage::kInterrupted)
    return;
  if (trial.stage == JobStage::kCancelling)
    trial.error = kCancelled;
  if (trial.stage >= JobStage::kCancelling)
    return end(trial, TrialState::kFailed);
  if (trial.training->all_have_ended())
    return end(trial, trial.complete(objectives_, settings_.objectives));
  if (trial.stage > JobStage::kInterrupted || evaluate_folds(trial)) {
    end(trial, trial.stage == JobStage::kPausing ? TrialState::kPaused : TrialState::kPruned);
  }
}

/// Whether the verdict on the mean of folds, which have all paused or ended, ends their job.
bool TrialJobs::evaluate_folds(StudyTrial& trial) {
  if (!trial.now.intermediate.empty()) {
    evaluate(trial, trial.now.intermediate.back().step);
  } else {
    // No epoch yet after which each fold has a value, as where a loop validates them after
    // different ones. Those that are behind continue.
    for (const TrialFit& fit : trial.training->fits) {
      if (!fit.values.empty())
        trial.next_evaluation = std::max(*trial.next_evaluation, fit.values.back().step);
    }
  }
  if (trial.stage != JobStage::kTraining)
    return true;
  if (!sequence_.counts(trial.job))
    trial.stage.advance(JobStage::kInterrupted);
  else if (!is_lost(trial))
    trial.training->order(ready_);
  return false;
}

/// Of a job of this process. If another one has taken it over, it stays open.
void TrialJobs::end(StudyTrial& trial, TrialState state) {
  const JobResult result = trial.result(state);
  if (history_.end(trial.job, result))
    close(trial, result, /*is_new=*/true);
}

void TrialJobs::close(StudyTrial& trial, const JobResult& result, bool is_new) {
  trial.end_job(result);
  sequence_.end(trial.job, trial.now);
  if (is_new)
    announce(trial);
  if (trial.now.state != TrialState::kPaused)
    files_.ended(trial, trials_);
}

void TrialJobs::announce(const StudyTrial& trial) {
  run_.log.notify([summary = record_.summary(trial),
                   search = record_.progress(trials_, history_.time().elapsed())](
                      RunObserver& observer) { observer.trial_changed(summary, search); });
}

// The end of the study, and other processes.

void TrialJobs::find_early_end() {
  if (const nlohmann::json& ended = history_.find_early_end(); !ended.is_null())
    sequence_.end_after(ended.at("jobs").get<std::size_t>());
}

void TrialJobs::poll() {
  shared()->fetch();
  if (!sequence_.is_over())
    find_early_end();
  for (std::size_t job = 0; job < sequence_.size(); ++job) {
    StudyTrial& trial = trial_at(sequence_.trial_of(job));
    if (sequence_.has_ended(job) || trial.stage == JobStage::kInterrupted || find_end(trial))
      continue;
    shared()->renew(trial.job);  // it is lost if this process was silent for too long
    if (!is_lost(trial) || trial.has_running_fit() || !sequence_.counts(trial.job))
      continue;
    // Its worker may have died: then the result of this process counts, or whichever process has a
    // free slot claims it again.
    if (is_due(trial))
      settle(trial);
    else
      trial.training->order(ready_);
  }
}

/// Fits that run although the study has ended.
std::vector<std::string> TrialJobs::fits_to_stop() {
  std::vector<std::string> running;
  for (std::size_t job = 0; job < sequence_.size(); ++job) {
    StudyTrial& trial = trial_at(sequence_.trial_of(job));
    if (sequence_.has_ended(job) || !trial.training ||
        (shared() != nullptr && sequence_.counts(trial.job)))
      continue;
    if (sequence_.counts(trial.job))
      trial.fail("was not finished when the time budget was used up");
    for (const TrialFit& fit : trial.training->fits) {
      if (fit.state == TrialFit::State::kRunning)
        running.push_back(fit.planned.id.path());
    }
  }
  return running;
}

}  // namespace treadle::internal

#include "search/study/study.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/host/run/checkpoint_store.h>
#include <treadle/search/trial_order.h>

#include "components/document_components.h"
#include "runtime/run_record.h"
#include "search/journal/study_identity.h"
#include "search/study/best_trials.h"
#include "search/study/cancelled_trials.h"
#include "search/study/early_end.h"
#include "search/study/job_result.h"
#include "search/study/study_end.h"
#include "store/trial_paths.h"

// Jobs end in another order whenever a run is repeated, so nothing here looks at what has ended
// last. `trials_` are as they are; `shown_` are as decisions see them, and changes only when a job
// is begun or seen. A trial's next job begins behind the sight of the one before, so that what is
// shown of a trial is always what it was at the end of a job.
//
// Life of a trial's job: begin_job() decides on it -> run_job() -> its fits report, pause, complete
// -> settle() -> end_job(), which also writes the journal. With one fold a trial is judged while it
// trains. Of several folds the mean is judged, so all of them pause first.
//
// A resumed run asks a new Study. It begins the same jobs: those whose end is in the journal end at
// once, with the results that stand there, and the others are trained from their checkpoints.

namespace treadle::internal {
namespace {

namespace fs = std::filesystem;

/// Where this many in turn have failed, their training is at fault rather than the trials.
constexpr std::size_t kMostLastTrainings = 3;

/// Without what a trial does not use: rows that only measure.
ValidationPlan plan_of_trials(ValidationPlan plan) {
  plan.refit.reset();
  for (Fold& fold : plan.folds)
    fold.test = {};
  return plan;
}

std::vector<bool> directions_of(const Objectives& objectives) {
  std::vector<bool> maximizes;
  for (std::size_t i = 0; i < objectives.size(); ++i)
    maximizes.push_back(objectives.maximizes(i));
  return maximizes;
}

}  // namespace

Study::Study(RunParts& run, SearchSettings settings, ValidationPlan plan)
    : run_(run),
      settings_(std::move(settings)),
      plan_(std::move(plan)),
      random_(streams_of_search(run.workflow())),
      objectives_(settings_, run.components()),
      journal_(run.folder.search_journal(), run.workflow().name, settings_.space,
               directions_of(objectives_), identity_of(run.workflow())),
      times_(trials_, plan_.folds.size(), plan_.refit.has_value(),
             {.most = run.components().training_plan().epochs,
              .may_stop_early = run.workflow().resolved.at("training").contains("early_stopping")}),
      budget_(times_, settings_.ensemble ? settings_.ensemble->size : 0, run.budget.workers(),
              /*needs_complete=*/objectives_.size() > 1 || objectives_.have_constraints()),
      files_(run.folder, settings_.keep) {
  for (const Fold& fold : plan_.folds) {
    if (!fold.inner.empty() || fold.validation.empty()) {
      fail_in_search(run_.workflow(), "/search",
                     "trials are compared by their validation rows, but the folds of this "
                     "validation have none, or inner ones; use another, such as hold_out or "
                     "k_fold");
    }
    if (settings_.pruner && fold.starts_from) {
      fail_in_search(run_.workflow(), "/search/pruner",
                     "folds that begin with the weights of the fold before cannot be judged "
                     "together; leave \"pruner\" out, or \"warm_start\"");
    }
  }
  if (!journal_.ended().is_null())
    end_ = journal_.ended().at("jobs").get<std::size_t>();
  if (settings_.storage)
    open_storage();
  if (settings_.asynchronous) {
    run_.log.note(
        "search: it is asynchronous, so its trials depend on which of them ended first; another "
        "run of this document may make other ones");
  }
}

void Study::open_storage() {
  is_joined_ = run_.options.joins;
  shared_.emplace(settings_.storage, settings_.study, settings_.lease);
  if (!is_joined_)
    run_.folder.share_trials_of(run_.folder.path());
  const nlohmann::json environment = run_.conditions().environment();
  const StudyDescription found =
      shared_->open({.identity = {{"search", identity_of(run_.workflow())},
                                  {"document", document_identity(run_.runtime.registry(),
                                                                 run_.workflow().resolved)}},
                     .document = run_.workflow().resolved,
                     .folder = fs::absolute(run_.folder.path()).lexically_normal().string(),
                     .token = is_joined_ ? std::string() : study_token(run_.folder.path()),
                     .environment = environment});
  if (is_joined_ && settings_.pruner_copies && !run_.folder.has_shared_trials())
    fail_without_folder(found.folder);
  const std::vector<std::string> others = differences(found.environment, environment);
  if (!others.empty() && !run_.options.allow_differences) {
    std::string text;
    for (const std::string& difference : others)
      text += (text.empty() ? "" : "; ") + difference;
    throw StorageError("the study " + settings_.study +
                       " was begun under other conditions: " + text +
                       "; trials of this process would differ from those of the others. "
                       "Pass --allow-differences to search with them all the same");
  }
  shared_->fetch();
  if (const nlohmann::json ended = shared_->ended(); !ended.is_null() && !end_)
    journal_.search_ended(ended), end_ = ended.at("jobs").get<std::size_t>();
}

void Study::fail_without_folder(const std::string& folder) const {
  throw StorageError("the study " + settings_.study +
                     " has trials that begin with the checkpoints of "
                     "others, as " +
                     quote_text(settings_.pruner_name) + " makes them. They are in " +
                     plain_text(folder) +
                     ", which this process cannot reach; join on a machine that has this "
                     "folder under the same path, or search with another pruner");
}

Study::~Study() {
  try {
    if (settings_.seconds)
      journal_.searched_for(elapsed());
  } catch (const Error&) {
    // The journal has what was noted last.
  }
  if (!shared_)
    return;
  try {
    // What this process has begun others may take up at once.
    for (std::size_t job = 0; job < jobs_.size(); ++job) {
      if (!jobs_[job].has_ended && jobs_[job].owner == Owner::kThis)
        shared_->release(static_cast<std::int64_t>(job));
    }
  } catch (const Error&) {
    // They wait until the lease has passed.
  }
}

FitId Study::id_of(std::int64_t number) const {
  const auto models = static_cast<std::int64_t>(plan_.folds.size() + (plan_.refit ? 1 : 0));
  // Behind all fits of an ordinary run, whose streams stay as they are without a search.
  return FitId(kTrialsGroup, models + 1, models + 2)
      .child(std::to_string(number), number, settings_.trials);
}

std::vector<std::string> Study::names_of(std::int64_t number) const {
  const std::string path = id_of(number).path();
  if (plan_.folds.size() == 1)
    return {path};
  std::vector<std::string> names;
  for (const Fold& fold : plan_.folds)
    names.push_back(path + "/" + fold.name);
  return names;
}

double Study::elapsed() const {
  return journal_.elapsed() + std::chrono::duration<double>(Clock::now() - begun_).count();
}

// What a job is begun with.

StudyView Study::view_of(const Trials& trials) const {
  return {.trials = trials,
          .max_trials = settings_.trials,
          .may_start = may_start(),
          .maximizes = objectives_.maximizes(0),
          .space = &settings_.space,
          .random = &random_};
}

bool Study::may_start() const {
  return !is_exhausted_ && static_cast<std::int64_t>(trials_.size()) < settings_.trials &&
         !has_lost_patience();
}

bool Study::has_lost_patience() const {
  return settings_.patience && trials_since_best(shown_) >= *settings_.patience;
}

FitPlanner::Orders Study::next() {
  Orders orders = std::exchange(ready_, {});
  if (best_run_ != nullptr)
    return orders;
  if (failure_)
    std::rethrow_exception(failure_);
  while (!is_over_ && begin_job(orders))
    continue;
  bool all_settled = true;
  for (std::size_t job = 0; job < jobs_.size(); ++job)
    all_settled = all_settled && is_settled(job);
  if (is_over_ && all_settled && !is_joined_)
    begin_best(orders);
  orders.waits = shared_ && best_run_ == nullptr && !(is_over_ && all_settled);
  return orders;
}

/// Whether nothing of a job is to come any more.
bool Study::is_settled(std::size_t number) const {
  const Job& job = jobs_[number];
  const StudyTrial& trial = trial_at(job.trial);
  if (job.has_ended || trial.is_cut_off)
    return true;
  return end_ && number >= *end_ && job.owner != Owner::kThis && !has_running_fit(trial);
}

void Study::see(const Job& job) {
  shown_[static_cast<std::size_t>(job.trial)] = trial_at(job.trial).now;
}

/// Whether decisions now see the first `count` jobs.
bool Study::see_jobs(std::size_t count) {
  for (; seen_ < count; ++seen_) {
    if (seen_ == jobs_.size() || !jobs_[seen_].has_ended)
      return false;
    see(jobs_[seen_]);
  }
  return true;
}

/// Whether another job was begun; otherwise a result is waited for, or there is none to come.
bool Study::begin_job(Orders& orders) {
  if (end_ && jobs_.size() == *end_) {
    ended_ = journal_.ended();
    is_over_ = true;
    return false;
  }
  const std::size_t parallel = static_cast<std::size_t>(settings_.parallel);
  std::size_t open = 0;
  if (settings_.asynchronous) {
    for (const Job& job : jobs_)
      open += job.has_ended ? 0 : 1;
    if (open >= parallel)
      return false;
  } else if (jobs_.size() >= parallel && !see_jobs(jobs_.size() - parallel + 1)) {
    return false;
  }
  for (;;) {
    // Others would not do the same: of a search with a storage such a trial ends once it is to go
    // on.
    const std::optional<std::int64_t> cancelled =
        shared_ ? std::nullopt
                : cancelled_while_paused(files_, journal_, shown_, trials_,
                                         static_cast<std::int64_t>(jobs_.size()));
    if (cancelled) {
      end_without_work(*cancelled, TrialState::kFailed);
      return true;
    }
    const NextJob next = settings_.pruner ? settings_.pruner->next_job(view_of(shown_)) : NextJob();
    if (next.kind == NextJob::Kind::kResume) {
      go_on_with(next.trial, orders);
      return true;
    }
    if (next.kind == NextJob::Kind::kPrune) {
      end_without_work(next.trial, TrialState::kPruned);
      return true;
    }
    if (next.kind == NextJob::Kind::kStart && may_start()) {
      if (start_trial(next, orders))
        return true;
      continue;  // the tuner had no more points, which the pruner may take into account
    }
    if (settings_.asynchronous && open > 0)
      return false;
    if (!settings_.asynchronous && seen_ < jobs_.size()) {
      if (!see_jobs(seen_ + 1))
        return false;
      continue;
    }
    // Nothing runs any more. A search ends with a trial that was trained to its end, if one can be.
    const std::optional<std::int64_t> paused = best_paused(shown_);
    if (paused && std::none_of(shown_.begin(), shown_.end(), is_complete)) {
      go_on_with(*paused, orders);
      return true;
    }
    is_over_ = true;
    ended_ = ended_with_trials(settings_, static_cast<std::int64_t>(trials_.size()), is_exhausted_,
                               has_lost_patience());
    return false;
  }
}

std::optional<Point> Study::point_of(std::int64_t number, const NextJob& job) {
  const std::vector<JournaledTrial>& earlier = journal_.earlier();
  if (number < static_cast<std::int64_t>(earlier.size()))
    return settings_.space.from_json(earlier[static_cast<std::size_t>(number)].params);
  return job.point ? job.point
                   : point_of_trial(settings_.space, *settings_.tuner, settings_.initial, shown_,
                                    number, random_);
}

bool Study::start_trial(const NextJob& job, Orders& orders) {
  const auto number = static_cast<std::int64_t>(trials_.size());
  const std::optional<Point> point = point_of(number, job);
  if (!point) {
    is_exhausted_ = true;
    return false;
  }
  Trial fresh;
  fresh.number = number;
  fresh.point = *point;
  fresh.is_suggested = !job.point && static_cast<std::size_t>(number) >= settings_.initial.size();
  std::int64_t epochs = 0;
  if (job.trial >= 0) {  // it has behind it what the other has
    const Trial& source = shown_[static_cast<std::size_t>(job.trial)];
    fresh.copied_from = job.trial;
    fresh.intermediate = source.intermediate;
    epochs = trial_at(job.trial).judged;
  }
  shown_.push_back(fresh);
  StudyTrial& trial = trials_.emplace_back();
  trial.inherited = fresh.intermediate;
  trial.now = std::move(fresh);
  trial.judged = epochs;
  journal_.started(number, settings_.space, *point);
  run_job(number, orders);
  return true;
}

/// A job without work, whose result is known: decisions see it at once, and every process ends it
/// by itself.
void Study::end_without_work(std::int64_t number, TrialState state) {
  StudyTrial& trial = trial_at(number);
  trial.job = static_cast<std::int64_t>(jobs_.size());
  Job& job = jobs_.emplace_back();
  job.trial = number;
  if (!ended_before(number)) {
    trial.is_cancelled = state == TrialState::kFailed;
    trial.error = trial.is_cancelled ? kCancelled : "";
    close_job(trial, state, /*seconds=*/0, /*is_news=*/true);
  }
  see(jobs_[static_cast<std::size_t>(trial.job)]);
}

void Study::go_on_with(std::int64_t number, Orders& orders) {
  const auto index = static_cast<std::size_t>(number);
  shown_[index].state = trials_[index].now.state = TrialState::kRunning;
  run_job(number, orders);
}

void Study::run_job(std::int64_t number, Orders& orders) {
  StudyTrial& trial = trial_at(number);
  trial.job = static_cast<std::int64_t>(jobs_.size());
  trial.verdict.reset();
  Job& job = jobs_.emplace_back();
  job.trial = number;
  if (settings_.pruner) {
    job.seen = std::make_shared<const Trials>(shown_);
    trial.next_judged = settings_.pruner->next_step(number, trial.judged);
  }
  if (ended_before(number) || ended_elsewhere(number))
    return;
  if (files_.is_cancelled(number)) {
    trial.is_cancelled = true;
    return settle(trial);
  }
  try {
    if (!trial.training)
      make_training(trial);
  } catch (const DocumentError& error) {  // ends of ranges do, but not these values together
    trial.error = error.what();
    return end_job(trial, TrialState::kFailed);
  }
  order_fits(trial, orders);
  tell(trial);
}

/// Ends the newest job of a trial as it ended in an earlier process.
bool Study::ended_before(std::int64_t number) {
  const std::vector<JournaledTrial>& earlier = journal_.earlier();
  StudyTrial& trial = trial_at(number);
  if (number >= static_cast<std::int64_t>(earlier.size()))
    return false;
  const JournaledTrial& known = earlier[static_cast<std::size_t>(number)];
  const bool has_ended = known.state != TrialState::kRunning;
  if (trial.jobs >= known.jobs.size() || (!known.jobs[trial.jobs].is_paused && !has_ended))
    return false;
  const JournaledTrial::Job& job = known.jobs[trial.jobs];
  trial.judged = job.epoch;
  trial.now.intermediate = trial.inherited;
  const std::int64_t inherited = trial.inherited.empty() ? 0 : trial.inherited.back().step;
  for (const IntermediateValue& value : known.intermediate) {
    if (value.step > inherited && (!job.is_paused || value.step <= job.epoch))
      trial.now.intermediate.push_back({value.step, objectives_.in_document(0, value.value)});
  }
  if (!job.is_paused) {
    trial.now.values = record_.in_document(known.values);
    trial.now.constraints = known.constraints;
    trial.error = known.error;
    trial.is_cancelled = known.error == kCancelled;
  }
  close_job(trial, job.is_paused ? TrialState::kPaused : known.state, job.seconds,
            /*is_news=*/false);
  return true;
}

/// Ends the newest job of a trial as another process has ended it.
bool Study::ended_elsewhere(std::int64_t number) {
  StudyTrial& trial = trial_at(number);
  const nlohmann::json* result = shared_ ? shared_->result(trial.job) : nullptr;
  if (result == nullptr || has_running_fit(trial))
    return false;
  JobResult end = read_job_result(
      *result, {.place = "job " + std::to_string(trial.job) + " of the study " + settings_.study,
                .trial = number,
                .values = objectives_.size(),
                .constraints = objectives_.constraint_count()});
  trial.judged = end.epoch;
  trial.now.values = std::move(end.values);
  trial.now.constraints = std::move(end.constraints);
  trial.now.intermediate = std::move(end.intermediate);
  trial.error = std::move(end.error);
  trial.is_cancelled = end.is_cancelled;
  close_job(trial, end.state, end.seconds, /*is_news=*/true);
  return true;
}

/// Whether the result of a job of this process counts.
bool Study::publish(const StudyTrial& trial, TrialState state, double seconds) {
  return shared_->finish(trial.job, to_json(JobResult{.trial = trial.now.number,
                                                      .state = state,
                                                      .epoch = trial.judged,
                                                      .values = trial.now.values,
                                                      .constraints = trial.now.constraints,
                                                      .intermediate = trial.now.intermediate,
                                                      .error = trial.error,
                                                      .is_cancelled = trial.is_cancelled,
                                                      .seconds = seconds}));
}

bool Study::begins(const FitId& id) {
  if (best_run_ != nullptr)
    return true;
  StudyTrial& trial = trial_of(id);
  Job& job = jobs_[static_cast<std::size_t>(trial.job)];
  TrialFit& fit = fit_of(trial, id);
  fit.begun = Clock::now();
  fit.is_at_first_epoch = true;
  if (!shared_)
    return true;
  if (job.owner != Owner::kThis && !is_over_ && !job.has_ended) {
    job.owner =
        copies_are_made_of(trial) && shared_->claim(trial.job) ? Owner::kThis : Owner::kAnother;
  }
  if (job.owner == Owner::kThis && !job.has_ended)
    return true;
  fit.begun.reset();
  fit.state = TrialFit::State::kPaused;
  return false;
}

/// Whether all trials that begin with this one's checkpoint have it, in whichever process: when the
/// trial goes on, its checkpoint is another one.
bool Study::copies_are_made_of(const StudyTrial& trial) const {
  return std::all_of(trials_.begin(), trials_.end(), [&](const StudyTrial& other) {
    if (other.now.copied_from != trial.now.number || other.jobs > 0)
      return true;
    const std::vector<std::string> fits = names_of(other.now.number);
    return std::none_of(fits.begin(), fits.end(), [&](const std::string& fit) {
      return CheckpointStore(run_.folder.checkpoints(fit)).newest().empty();
    });
  });
}

std::optional<double> Study::poll_interval() const {
  if (!shared_ || best_run_ != nullptr)
    return std::nullopt;
  return std::min(shared_->lease() / 4, 1.0);
}

std::vector<std::string> Study::poll() {
  if (!shared_ || best_run_ != nullptr)
    return {};
  shared_->fetch();
  const nlohmann::json ended = shared_->ended();
  if (!ended.is_null() && !is_over_) {
    end_ = ended.at("jobs").get<std::size_t>();
    ended_ = ended;
    is_over_ = true;
    journal_.search_ended(ended);
  }
  for (std::size_t number = 0; number < jobs_.size(); ++number) {
    Job& job = jobs_[number];
    StudyTrial& trial = trial_at(job.trial);
    if (job.has_ended || trial.is_cut_off || ended_elsewhere(job.trial))
      continue;
    if (job.owner == Owner::kThis && !shared_->renew(trial.job))
      job.owner = Owner::kAnother;  // this process was silent for too long
    if (job.owner != Owner::kAnother || has_running_fit(trial) || is_over_)
      continue;
    // Its worker may have died: what this process has of it counts then, or whoever has a free slot
    // asks for it again.
    if (job.ended_late) {
      end_job(trial, *job.ended_late);
    } else {
      order_fits(trial, ready_);
    }
  }
  return is_over_ && end_ ? cut_off(*end_) : std::vector<std::string>();
}

void Study::make_training(StudyTrial& trial) {
  // Of a pruner whose schema does not declare it.
  if (trial.now.copied_from && is_joined_ && !run_.folder.has_shared_trials())
    fail_without_folder("the folder of the run that began the search");
  const std::shared_ptr<const ResolvedWorkflow> document = document_of(trial.now.number);
  TrialTraining& training = trial.training.emplace();
  training.folds =
      std::make_unique<CrossValidation>(plan_of_trials(plan_), run_.components().training_plan(),
                                        std::vector<Baseline>(), id_of(trial.now.number), document);
  for (PlannedFit& fit : training.folds->next().start) {
    fit.keeps_weights = fit.keeps_weights || settings_.keep > 0;
    fit.counts_cost = objectives_.need_cost();
    if (trial.now.copied_from) {
      fit.start = WarmStart{names_of(*trial.now.copied_from)[training.fits.size()],
                            WarmStart::From::kCheckpoint};
    }
    training.fits.push_back({.planned = std::move(fit)});
    for (const IntermediateValue& value : trial.inherited)
      training.fits.back().values.push_back({value.step, value.value});
  }
}

void Study::order_fits(StudyTrial& trial, Orders& orders) {
  for (TrialFit& fit : trial.training->fits) {
    if (fit.state == TrialFit::State::kEnded)
      continue;
    // A fold may begin with the weights of the one before. Planned before that has them, it would
    // fail the run where that one fails.
    const auto& start = fit.planned.start;
    const bool waits = start && std::any_of(trial.training->fits.begin(),
                                            trial.training->fits.end(), [&](const TrialFit& other) {
                                              return other.planned.id.path() == start->fit &&
                                                     other.state != TrialFit::State::kEnded;
                                            });
    if (waits)
      continue;
    if (fit.is_known) {
      orders.resume.push_back(fit.planned.id.path());
    } else {
      orders.start.push_back(fit.planned);
    }
    fit.is_known = true;
    fit.state = TrialFit::State::kRunning;
  }
}

// What a job came to.

StudyTrial& Study::trial_of(const FitId& fit) {
  return trial_at(trial_in_path(fit.path()).value());
}

TrialFit& Study::fit_of(StudyTrial& trial, const FitId& id) {
  return *std::find_if(trial.training->fits.begin(), trial.training->fits.end(),
                       [&](const TrialFit& fit) { return fit.planned.id == id; });
}

PrunerVerdict Study::judge(StudyTrial& trial, std::int64_t epoch) {
  trial.judged = epoch;
  const Job& job = jobs_[static_cast<std::size_t>(trial.job)];
  const PrunerVerdict verdict =
      settings_.pruner->judge(trial.now, view_of(settings_.asynchronous ? shown_ : *job.seen));
  if (verdict == PrunerVerdict::kContinue)
    trial.next_judged = settings_.pruner->next_step(trial.now.number, epoch);
  return verdict;
}

FitVerdict Study::reported(const FitId& id, const EpochSummary& epoch) {
  if (best_run_ != nullptr) {
    if (settings_.seconds)
      note_elapsed();
    return FitVerdict::kContinue;
  }
  StudyTrial& trial = trial_of(id);
  TrialFit& fit = fit_of(trial, id);
  trial.epoch_times.add(epoch.seconds, std::exchange(fit.is_at_first_epoch, false));
  const bool is_alone = trial.training->fits.size() == 1;
  const bool is_judged =
      epoch.epoch > trial.judged && trial.next_judged && epoch.epoch >= *trial.next_judged;
  const std::optional<Number> number = objectives_.value_after(epoch);
  std::optional<FoldValue> value;
  if (number)
    value = {epoch.epoch, number->is_undefined() ? std::nullopt : std::optional(number->value())};
  // An epoch that is judged and was not validated has the value of the last one that was.
  else if (is_judged && !fit.values.empty())
    value = {epoch.epoch, fit.values.back().value};
  if (value) {
    fit.values.push_back(*value);
    if (is_alone && value->value) {
      trial.now.intermediate = mean_of_folds(trial.training->fits);
      journal_.reported(trial.now.number, {epoch.epoch, objectives_.in_document(0, *value->value)});
    }
  }
  // Another process has taken this job over. A verdict that is due is given all the same: should
  // the job come back to this process, the trial goes on behind this epoch, or ends with it.
  const bool is_lost = jobs_[static_cast<std::size_t>(trial.job)].owner == Owner::kAnother;
  const FitVerdict otherwise = is_lost ? FitVerdict::kPause : FitVerdict::kContinue;
  if (!is_lost && files_.is_cancelled(trial.now.number)) {
    trial.is_cancelled = true;
    return FitVerdict::kStop;
  }
  if (!is_judged || fit.values.empty())
    return otherwise;
  if (!is_alone)
    return FitVerdict::kPause;
  if (!fit.values.back().value)  // what is undefined prunes nothing
    return otherwise;
  const PrunerVerdict verdict = judge(trial, epoch.epoch);
  if (verdict == PrunerVerdict::kContinue)
    return otherwise;
  trial.verdict = verdict;
  return verdict == PrunerVerdict::kPause ? FitVerdict::kPause : FitVerdict::kStop;
}

void Study::leaves_slot(const StudyTrial& trial, TrialFit& fit, TrialFit::State state) {
  fit.state = state;
  if (const auto begun = std::exchange(fit.begun, std::nullopt)) {
    jobs_[static_cast<std::size_t>(trial.job)].seconds +=
        std::chrono::duration<double>(Clock::now() - *begun).count();
  }
}

void Study::paused(const FitId& id) {
  StudyTrial& trial = trial_of(id);
  leaves_slot(trial, fit_of(trial, id), TrialFit::State::kPaused);
  settle(trial);
}

void Study::stopped(const FitId& id) {
  if (best_run_ != nullptr)
    return;
  StudyTrial& trial = trial_of(id);
  leaves_slot(trial, fit_of(trial, id), TrialFit::State::kPaused);
  trial.is_cut_off = !trial.verdict && !trial.is_cancelled;
  settle(trial);
}

void Study::completed(const FitId& id, CompletedFit result) {
  if (best_run_ != nullptr)
    return best_run_->completed(id, std::move(result));
  StudyTrial& trial = trial_of(id);
  leaves_slot(trial, fit_of(trial, id), TrialFit::State::kEnded);
  trial.training->folds->completed(id, std::move(result));
  settle(trial);
}

bool Study::failed(const FitId& id, const Error& error) {
  if (best_run_ != nullptr) {
    if (!CrossValidation::is_baseline(id))
      last_training_failed(error);
    return false;
  }
  StudyTrial& trial = trial_of(id);
  std::vector<TrialFit>& fits = trial.training->fits;
  TrialFit& fit = fit_of(trial, id);
  leaves_slot(trial, fit, TrialFit::State::kEnded);
  // The first fold's failure is the trial's, whichever failed first.
  const auto fold = static_cast<std::size_t>(&fit - fits.data());
  if (trial.error.empty() || fold < trial.failed_fold) {
    trial.error = error.what();
    trial.failed_fold = fold;
  }
  settle(trial);
  return true;
}

/// Ends the job of a trial once none of its fits runs.
void Study::settle(StudyTrial& trial) {
  if (trial.training) {
    std::vector<TrialFit>& fits = trial.training->fits;
    // Of folds that follow one another, the next begins.
    const bool one_waits = std::any_of(fits.begin(), fits.end(), [](const TrialFit& fit) {
      return fit.state == TrialFit::State::kWaiting;
    });
    if (one_waits && trial.error.empty() && !trial.is_cancelled && !trial.is_cut_off)
      order_fits(trial, ready_);
    if (std::any_of(fits.begin(), fits.end(),
                    [](const TrialFit& fit) { return fit.state == TrialFit::State::kRunning; }))
      return;
    trial.now.intermediate = mean_of_folds(trial.training->fits);
  }
  const bool is_lost = jobs_[static_cast<std::size_t>(trial.job)].owner == Owner::kAnother;
  if (is_lost) {
    const bool has_ended_here =
        !trial.error.empty() || trial.is_cancelled || trial.verdict || is_to_be_judged(trial);
    if (ended_elsewhere(trial.now.number) || !has_ended_here)
      return;
  }
  if (!trial.error.empty())
    return end_job(trial, TrialState::kFailed);
  if (trial.is_cancelled) {
    trial.error = kCancelled;
    return end_job(trial, TrialState::kFailed);
  }
  if (trial.is_cut_off)
    return;
  const std::vector<TrialFit>& fits = trial.training->fits;
  if (std::all_of(fits.begin(), fits.end(),
                  [](const TrialFit& fit) { return fit.state == TrialFit::State::kEnded; }))
    return settle_completed(trial);
  if (!trial.verdict) {  // of several folds
    const PrunerVerdict verdict = judge_folds(trial);
    if (verdict == PrunerVerdict::kContinue) {
      trial.is_cut_off = is_over_;
      return is_over_ || is_lost ? void() : order_fits(trial, ready_);
    }
    trial.verdict = verdict;
  }
  end_job(trial,
          *trial.verdict == PrunerVerdict::kPause ? TrialState::kPaused : TrialState::kPruned);
}

/// Whether all that was trained of a job is there for a verdict, or its end.
bool Study::is_to_be_judged(const StudyTrial& trial) const {
  return trial.training && std::all_of(trial.training->fits.begin(), trial.training->fits.end(),
                                       [&](const TrialFit& fit) {
                                         return fit.state == TrialFit::State::kEnded ||
                                                (trial.next_judged && !fit.values.empty() &&
                                                 fit.values.back().step >= *trial.next_judged);
                                       });
}

/// The verdict on the mean of folds that have all paused or ended.
PrunerVerdict Study::judge_folds(StudyTrial& trial) {
  if (!trial.now.intermediate.empty())
    return judge(trial, trial.now.intermediate.back().step);
  // No epoch yet after which each fold has a value, as where a loop validates them after different
  // ones. Those that are behind go on.
  for (const TrialFit& fit : trial.training->fits) {
    if (!fit.values.empty())
      trial.next_judged = std::max(*trial.next_judged, fit.values.back().step);
  }
  return PrunerVerdict::kContinue;
}

void Study::settle_completed(StudyTrial& trial) {
  const std::vector<CompletedFit>& folds = trial.training->folds->folds();
  const std::vector<Number> values = objectives_.values(folds);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!values[i].is_known()) {
      trial.error =
          settings_.objectives[i] + (values[i].is_undefined() ? " is undefined: " + values[i].why()
                                                              : " is not a finite number");
      return end_job(trial, TrialState::kFailed);
    }
  }
  trial.now.values.assign(values.begin(), values.end());
  for (const Number& value : objectives_.constraints(folds)) {
    trial.now.constraints.push_back(std::isnan(value) ? std::numeric_limits<double>::max()
                                                      : value.value());
  }
  end_job(trial, TrialState::kComplete);
}

/// Ends a job of this process.
void Study::end_job(StudyTrial& trial, TrialState state) {
  Job& job = jobs_[static_cast<std::size_t>(trial.job)];
  const double seconds = job.seconds;
  if (shared_) {
    // One that failed before its training began has no owner yet.
    if (job.owner != Owner::kThis)
      job.owner = shared_->claim(trial.job) ? Owner::kThis : Owner::kAnother;
    if (job.owner != Owner::kThis || !publish(trial, state, seconds)) {
      job.owner = Owner::kAnother;
      job.ended_late = state;
      return;
    }
    ++jobs_done_;
  }
  close_job(trial, state, seconds, /*is_news=*/true);
}

/// `is_news`: the journal does not have it.
void Study::close_job(StudyTrial& trial, TrialState state, double seconds, bool is_news) {
  Job& job = jobs_[static_cast<std::size_t>(trial.job)];
  trial.now.state = state;
  job.has_ended = true;
  job.seen.reset();
  ++trial.jobs;
  trial.seconds += seconds;
  trial.timed_epochs = own_epochs(trial);
  if (is_news) {
    for (const IntermediateValue& value : trial.now.intermediate)
      journal_.reported(trial.now.number, {value.step, objectives_.in_document(0, value.value)});
    journal_.job_ended({.job = trial.job,
                        .trial = trial.now.number,
                        .state = state,
                        .epoch = trial.judged,
                        .values = record_.in_document(trial.now.values),
                        .constraints = trial.now.constraints,
                        .error = trial.error,
                        .seconds = seconds,
                        .elapsed = elapsed()});
  }
  if (is_news)
    tell(trial);
  if (settings_.asynchronous)
    see(job);
  if (state == TrialState::kPaused)
    return;
  trial.training.reset();
  files_.ended(trial, trials_);
}

void Study::tell(const StudyTrial& trial) {
  run_.log.notify([summary = record_.summary(trial), search = record_.progress(trials_, elapsed())](
                      RunObserver& o) { o.trial_changed(summary, search); });
}

// The end.

std::optional<double> Study::seconds_left() {
  if (!settings_.seconds || is_over_)
    return std::nullopt;
  note_elapsed();
  return budget_.left_for_trials(*settings_.seconds - elapsed(),
                                 shared_ ? shown_ : newest_trials());
}

/// As they are, those that run as they were at the end of their last job. Decisions may still wait
/// for a slow one before the best: the search can end with that one all the same.
Study::Trials Study::newest_trials() const {
  Trials newest = shown_;
  for (std::size_t i = 0; i < newest.size(); ++i) {
    if (trials_[i].now.state != TrialState::kRunning)
      newest[i] = trials_[i].now;
  }
  return newest;
}

/// A kill loses no more of the time than a two-hundredth of the budget.
void Study::note_elapsed() {
  const double now = elapsed();
  if (now - noted_elapsed_ < std::max(0.25, *settings_.seconds / 200))
    return;
  journal_.searched_for(now);
  noted_elapsed_ = now;
}

std::optional<Study::TimeOfMembers> Study::time_of_members() const {
  if (!settings_.seconds || best_ < 0)
    return std::nullopt;
  const double left = ended_.contains("seconds_left") ? ended_.at("seconds_left").get<double>()
                                                      : *settings_.seconds - elapsed();
  return TimeOfMembers{left, left * run_.budget.workers() - times_.of_last(best_)};
}

bool Study::is_out_of_time() const {
  return settings_.seconds && elapsed() >= *settings_.seconds;
}

std::vector<std::string> Study::end_by_time() {
  std::size_t jobs = 0;
  while (jobs < jobs_.size() && jobs_[jobs].has_ended)
    ++jobs;
  std::vector<std::string> given_up;
  if (budget_.best_trial() && !shared_)
    jobs = give_up_before(jobs, *budget_.best_trial(), given_up);
  is_over_ = true;
  ended_ = ended_by_time(jobs, *settings_.seconds - elapsed(), budget_.best_trial());
  if (shared_)
    ended_ = shared_->end(ended_);
  end_ = ended_.at("jobs").get<std::size_t>();
  journal_.search_ended(ended_);
  std::vector<std::string> stopped = cut_off(*end_);
  stopped.insert(stopped.end(), given_up.begin(), given_up.end());
  return stopped;
}

/// The first `jobs` jobs have ended. Where `best` is behind them, those between that are still
/// running fail: rather than that the search ends with a worse trial, or without a result.
std::size_t Study::give_up_before(std::size_t jobs, std::int64_t best,
                                  std::vector<std::string>& fits) {
  std::size_t behind_best = jobs;
  for (std::size_t job = jobs; job < jobs_.size(); ++job) {
    if (jobs_[job].trial == best && jobs_[job].has_ended)
      behind_best = job + 1;
  }
  for (; jobs < behind_best; ++jobs) {
    StudyTrial& trial = trial_at(jobs_[jobs].trial);
    if (jobs_[jobs].has_ended || !trial.training)
      continue;
    trial.error = "was not finished when the time budget was used up";
    for (const TrialFit& fit : trial.training->fits) {
      if (fit.state == TrialFit::State::kRunning)
        fits.push_back(fit.planned.id.path());
    }
  }
  while (jobs < jobs_.size() && jobs_[jobs].has_ended)
    ++jobs;
  return jobs;
}

/// The fits that run for later jobs than the first `jobs`.
std::vector<std::string> Study::cut_off(std::size_t jobs) {
  std::vector<std::string> running;
  for (std::size_t number = jobs; number < jobs_.size(); ++number) {
    const StudyTrial& trial = trial_at(jobs_[number].trial);
    if (jobs_[number].has_ended || !trial.training)
      continue;
    for (const TrialFit& fit : trial.training->fits) {
      if (fit.state == TrialFit::State::kRunning)
        running.push_back(fit.planned.id.path());
    }
  }
  return running;
}

/// The trial whose document the last training has: a paused one where none is complete. When its
/// time was up, a search has chosen already, so that it chooses the same after a resume. One whose
/// last training has failed makes room for the next best.
std::optional<std::int64_t> Study::chosen_trial() const {
  const std::vector<std::int64_t>& failed = journal_.failed_last_trainings();
  const auto has_failed = [&](std::int64_t trial) {
    return std::find(failed.begin(), failed.end(), trial) != failed.end();
  };
  if (ended_.contains("best_trial")) {
    const auto best = ended_.at("best_trial").get<std::int64_t>();
    if (best >= 0 && best < static_cast<std::int64_t>(shown_.size()) && !has_failed(best))
      return best;
  }
  Trials left = shown_;
  std::erase_if(left, [&](const Trial& trial) { return has_failed(trial.number); });
  const std::optional<std::int64_t> complete = best_complete(left);
  return complete ? complete : best_paused(left);
}

/// Anything but a failed training, such as data that is gone, is no trial's fault.
void Study::last_training_failed(const Error& error) {
  if (dynamic_cast<const TrainingError*>(&error) == nullptr || has_next_best_)
    return;
  journal_.last_training_failed(best_);
  const std::optional<std::int64_t> next = chosen_trial();
  has_next_best_ = next && journal_.failed_last_trainings().size() < kMostLastTrainings;
  run_.log.note(
      "search: the last training of trial " + std::to_string(best_) + " failed: " + error.what() +
      (has_next_best_ ? "; that of trial " + std::to_string(*next) + ", the next best, begins"
                      : std::string()));
}

void Study::begin_best(Orders& orders) {
  see_jobs(end_.value_or(jobs_.size()));
  // Of trials whose jobs do not count, what was before those.
  while (!shown_.empty() && shown_.back().state == TrialState::kRunning &&
         shown_.back().intermediate.empty())
    shown_.pop_back();
  for (Trial& trial : shown_) {
    if (trial.state == TrialState::kRunning)
      trial.state = TrialState::kPaused;
  }
  const std::optional<std::int64_t> chosen = chosen_trial();
  if (!chosen && end_) {
    throw TrainingError(
        "no trial of the search was finished in its time budget; give it more time (tune --resume "
        "RUN --time TIME), or its trials fewer epochs");
  }
  if (!chosen)
    throw TrainingError(why_none_is_complete(trials_, settings_.pruner_name));
  best_ = *chosen;
  if (const Trial& best = shown_[static_cast<std::size_t>(best_)];
      is_complete(best) && violation(best) > 0) {
    run_.log.note("search: no trial keeps all constraints; trial " + std::to_string(best_) +
                  " breaks them the least, and is trained");
  }
  best_document_ = document_of(best_);
  const DocumentComponents components(run_.runtime, *best_document_, run_.dataset());
  best_run_ = std::make_unique<CrossValidation>(plan_, components.training_plan(),
                                                baselines_of(run_.runtime, *best_document_),
                                                std::nullopt, best_document_);
  if (const auto& last = journal_.last_training(); !last || last->trial != best_) {
    files_.remove(best_run_->names());  // of a trial whose last training has failed
    const auto until = [this] { return elapsed() + times_.of_last(best_); };
    journal_.trains_last({best_, settings_.seconds ? std::optional(until()) : std::nullopt});
  }
  for (PlannedFit& fit : best_run_->next().start) {
    if (fit.is_result)
      fit.deadline = deadline_of_last();
    orders.start.push_back(std::move(fit));
  }
}

/// A last training ends with the budget, however long it would learn: with the best weights by
/// then. It has as long as the search expected all the same, so that one that begins late still
/// learns. Of several folds only the last ones would be cut short, and with them what their means
/// are: they have no deadline.
std::optional<Study::Clock::time_point> Study::deadline_of_last() const {
  if (!settings_.seconds || plan_.folds.size() != 1 || plan_.refit)
    return std::nullopt;
  const double until = journal_.last_training()->until.value_or(0);
  const double seconds = std::max(*settings_.seconds, until) - elapsed();
  return Clock::now() +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

std::vector<std::int64_t> Study::candidates() const {
  std::vector<std::int64_t> kept;
  const bool some_keep_constraints = violation(trial_at(best_).now) <= 0;
  for (const std::int64_t trial : files_.kept()) {
    // One behind the end of the study does not count.
    const auto index = static_cast<std::size_t>(trial);
    if (index < shown_.size() && is_complete(shown_[index]) &&
        (!some_keep_constraints || violation(shown_[index]) <= 0))
      kept.push_back(trial);
  }
  std::sort(kept.begin(), kept.end());
  return kept;
}

std::shared_ptr<const ResolvedWorkflow> Study::document_of(std::int64_t trial) const {
  return std::make_shared<const ResolvedWorkflow>(
      trial_document(run_.runtime, run_.workflow(), settings_.space, trial_at(trial).now.point));
}

std::vector<std::string> Study::names() const {
  std::vector<std::string> names;
  // Those that were cut off do not count, as if they had not begun.
  for (const Trial& trial : shown_) {
    for (std::string& name : names_of(trial.number))
      names.push_back(std::move(name));
  }
  const std::vector<std::string> last = best_run_->names();
  names.insert(names.end(), last.begin(), last.end());
  return names;
}

SearchResult Study::record() const {
  SearchResult result = record_.of_search(shown_, trials_, best_, ended_);
  result.space = run_.workflow().resolved.at("search").at("space");
  return result;
}

}  // namespace treadle::internal

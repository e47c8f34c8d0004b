#include "search/study/study.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/search/trial_order.h>

#include "search/journal/study_identity.h"
#include "search/study/best_trials.h"
#include "search/study/study_end.h"
#include "search/study/study_record.h"

namespace treadle::internal {
namespace {

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
      objectives_(settings_, run.components()),
      plan_(run, settings_, objectives_, std::move(plan)),
      journal_(run.folder.search_journal(), run.workflow().name, settings_.space,
               directions_of(objectives_), identity_of(run.workflow())),
      time_(journal_, settings_.seconds),
      shared_(settings_.storage ? std::optional(open_shared_study(run, settings_)) : std::nullopt),
      history_(journal_, shared_ ? &*shared_ : nullptr, time_,
               {.values = objectives_.size(), .constraints = objectives_.constraint_count()}),
      jobs_(run, settings_, plan_, history_),
      times_(jobs_.trials(), plan_.validation().folds.size(), plan_.validation().refit.has_value(),
             {.most = run.components().training_plan().epochs,
              .may_stop_early = run.workflow().resolved.at("training").contains("early_stopping")}),
      budget_(times_, settings_.ensemble ? settings_.ensemble->size : 0, run.trainings_at_once(),
              /*needs_complete=*/objectives_.size() > 1 || objectives_.have_constraints()) {
  if (settings_.asynchronous) {
    run_.log.note(
        "search: it is asynchronous, so its trials depend on which of them ended first; another "
        "run of this document may make other ones");
  }
}

Study::~Study() {
  try {
    time_.note_now();
  } catch (const Error&) {
    // The journal keeps the time that was noted last.
  }
  try {
    if (shared_)
      shared_->release();
  } catch (const Error&) {
    // Others wait until the lease has passed.
  }
}

FitPlanner::Orders Study::next() {
  Orders orders;
  if (best_)
    return orders;
  if (failure_)
    std::rethrow_exception(failure_);
  const bool is_open = jobs_.order(orders);
  orders.waits = is_open && shared_;
  if (!is_open && !run_.options.joins)
    begin_best(orders);
  return orders;
}

bool Study::begins(const FitId& fit) {
  return best_ || jobs_.begins(fit);
}

FitVerdict Study::reported(const FitId& fit, const EpochSummary& epoch) {
  if (!best_)
    return jobs_.reported(fit, epoch);
  time_.note();
  return FitVerdict::kContinue;
}

void Study::paused(const FitId& fit) {
  jobs_.paused(fit);
}

void Study::stopped(const FitId& fit) {
  if (!best_)
    jobs_.stopped(fit);
}

void Study::completed(const FitId& fit, CompletedFit result) {
  best_ ? best_->fits().completed(fit, std::move(result)) : jobs_.completed(fit, std::move(result));
}

bool Study::failed(const FitId& fit, const Error& error) {
  if (!best_) {
    jobs_.failed(fit, error);
    return true;
  }
  if (const std::string note = best_->failed(fit, error); !note.empty())
    run_.log.note(note);
  return false;
}

// Time, and other processes.

Study::Tick Study::tick() {
  Tick tick;
  try {
    if (settings_.seconds && !jobs_.sequence().is_over() && seconds_for_trials() <= 0) {
      end_by_time();
      tick.stop = jobs_.fits_to_stop();
    }
    const auto now = SearchTime::Clock::now();
    if (!shared_ || best_ || now < next_poll_)
      return tick;
    const std::chrono::duration<double> interval(std::min(shared_->lease() / 4, 1.0));
    next_poll_ = now + std::chrono::duration_cast<SearchTime::Clock::duration>(interval);
    jobs_.poll();
    const std::vector<std::string> stop = jobs_.fits_to_stop();
    tick.stop.insert(tick.stop.end(), stop.begin(), stop.end());
    tick.has_orders = true;
  } catch (...) {
    failure_ = std::current_exception();
    tick.has_orders = true;
  }
  return tick;
}

/// How long trials may still be trained.
double Study::seconds_for_trials() {
  time_.note();
  return budget_.left_for_trials(
      *time_.left(), shared_ ? jobs_.sequence().trials() : jobs_.sequence().newest_trials());
}

/// The study is its jobs before the first that runs. Without a storage it includes the best trial
/// all the same: running jobs before the end of that one fail, rather than that the search ends
/// with a worse trial, or without a result.
void Study::end_by_time() {
  const JobSequence& sequence = jobs_.sequence();
  std::size_t jobs = sequence.ended_from(0);
  const std::optional<std::int64_t> best = budget_.best_trial();
  for (std::size_t job = jobs; best && !shared_ && job < sequence.size(); ++job) {
    if (sequence.trial_of(job) == *best && sequence.has_ended(job))
      jobs = sequence.ended_from(job);
  }
  history_.end_early(ended_by_time(jobs, *time_.left(), best));
  jobs_.find_early_end();
}

nlohmann::json Study::ended() const {
  return journal_.ended().is_null() ? ended_by(jobs_.sequence().end_reason(), settings_)
                                    : journal_.ended();
}

// The last training, and the result.

void Study::begin_best(Orders& orders) {
  const nlohmann::json ended = this->ended();
  best_.emplace(journal_, jobs_.sequence().final_trials(),
                ended.contains("best_trial")
                    ? std::optional(ended.at("best_trial").get<std::int64_t>())
                    : std::nullopt);
  const std::optional<std::int64_t> chosen = best_->choose();
  if (!chosen && !journal_.ended().is_null()) {
    throw TrainingError(
        "no trial of the search was finished in its time budget; give it more time (tune --resume "
        "RUN --time TIME), or its trials fewer epochs");
  }
  if (!chosen)
    throw TrainingError(why_none_is_complete(jobs_.trials(), settings_.pruner_name));
  if (const Trial& best = best_->trials()[static_cast<std::size_t>(*chosen)];
      is_complete(best) && violation(best) > 0) {
    run_.log.note("search: no trial keeps all constraints; trial " + std::to_string(*chosen) +
                  " breaks them the least, and is trained");
  }
  std::shared_ptr<const ResolvedWorkflow> document = document_of(*chosen);
  std::unique_ptr<CrossValidation> fits = plan_.best_run_of(document);
  if (const auto& last = journal_.last_training(); !last || last->trial != *chosen) {
    jobs_.files().remove(fits->names());  // of a trial whose last training has failed
    LastTraining begun{*chosen};
    if (settings_.seconds)
      begun.until = time_.elapsed() + times_.of_last(*chosen);
    journal_.last_training_began(begun);
  }
  Orders last = best_->begin(*chosen, std::move(document), std::move(fits), deadline_of_last());
  std::move(last.start.begin(), last.start.end(), std::back_inserter(orders.start));
}

/// A last training ends with the budget, however long it would learn: with the best weights by
/// then. It has the time that the search expected all the same, so that one that begins late still
/// learns. Of several folds only the last ones would be cut short, which would bias their means:
/// they have no deadline.
std::optional<SearchTime::Clock::time_point> Study::deadline_of_last() const {
  const ValidationPlan& plan = plan_.validation();
  if (!settings_.seconds || plan.folds.size() != 1 || plan.refit)
    return std::nullopt;
  return time_.at(std::max(*settings_.seconds, journal_.last_training()->until.value_or(0)));
}

std::optional<Study::TimeOfMembers> Study::time_of_members() const {
  if (!settings_.seconds || !best_)
    return std::nullopt;
  const double left = ended().value("seconds_left", *time_.left());
  return TimeOfMembers{left, left * run_.trainings_at_once() - times_.of_last(best_->trial())};
}

std::shared_ptr<const ResolvedWorkflow> Study::document_of(std::int64_t trial) const {
  return plan_.document_of(jobs_.trials()[static_cast<std::size_t>(trial)].now.point);
}

std::vector<std::string> Study::names() const {
  std::vector<std::string> names;
  for (const Trial& trial : best_->trials()) {
    for (std::string& name : names_of(trial.number))
      names.push_back(std::move(name));
  }
  const std::vector<std::string> last = best_run().names();
  names.insert(names.end(), last.begin(), last.end());
  return names;
}

SearchResult Study::record() const {
  SearchResult result = StudyRecord(settings_, objectives_)
                            .of_search(best_->trials(), jobs_.trials(), best_->trial(), ended());
  result.space = run_.workflow().resolved.at("search").at("space");
  return result;
}

}  // namespace treadle::internal

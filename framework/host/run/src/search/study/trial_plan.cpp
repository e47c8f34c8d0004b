#include "search/study/trial_plan.h"

#include <algorithm>
#include <utility>

#include <treadle/host/run/checkpoint_store.h>

#include "search/journal/shared_study.h"
#include "store/trial_paths.h"

namespace treadle::internal {
namespace {

/// Without the rows and the refit that only the last training uses.
ValidationPlan plan_of_trials(ValidationPlan plan) {
  plan.refit.reset();
  for (Fold& fold : plan.folds)
    fold.test = {};
  return plan;
}

}  // namespace

TrialPlan::TrialPlan(RunParts& run, const SearchSettings& settings, const Objectives& objectives,
                     ValidationPlan plan)
    : run_(run), settings_(settings), objectives_(objectives), plan_(std::move(plan)) {
  for (const Fold& fold : plan_.folds) {
    if (!fold.inner.empty() || fold.validation.empty()) {
      fail_in_search(run_.workflow(), "/search",
                     "trials are compared by their validation rows, but the folds of this "
                     "validation have none, or inner ones; use another, such as hold_out or "
                     "k_fold");
    }
    if (settings_.pruner && fold.starts_from) {
      fail_in_search(run_.workflow(), "/search/pruner",
                     "folds that begin with the weights of the fold before cannot be pruned "
                     "together; leave \"pruner\" out, or \"warm_start\"");
    }
  }
}

FitId TrialPlan::id_of(std::int64_t trial) const {
  const auto models = static_cast<std::int64_t>(plan_.folds.size() + (plan_.refit ? 1 : 0));
  // Behind all fits of an ordinary run, whose streams stay as they are without a search.
  return FitId(kTrialsGroup, models + 1, models + 2)
      .child(std::to_string(trial), trial, settings_.trials);
}

std::vector<std::string> TrialPlan::names_of(std::int64_t trial) const {
  const std::string path = id_of(trial).path();
  if (plan_.folds.size() == 1)
    return {path};
  std::vector<std::string> names;
  for (const Fold& fold : plan_.folds)
    names.push_back(path + "/" + fold.name);
  return names;
}

std::shared_ptr<const ResolvedWorkflow> TrialPlan::document_of(const Point& point) const {
  return std::make_shared<const ResolvedWorkflow>(
      trial_document(run_.runtime, run_.workflow(), settings_.space, point));
}

TrialTraining TrialPlan::training_of(const StudyTrial& trial) const {
  const std::optional<std::int64_t>& source = trial.now.copied_from;
  // A pruner may copy although its schema does not declare it.
  if (source && run_.options.joins && !run_.folder.has_shared_trials())
    fail_without_folder(settings_, "the folder of the run that began the search");
  const std::shared_ptr<const ResolvedWorkflow> document = document_of(trial.now.point);
  TrialTraining training{std::make_unique<CrossValidation>(
      plan_of_trials(plan_), run_.components().training_plan(), std::vector<Baseline>(),
      id_of(trial.now.number), document)};
  for (PlannedFit& fit : training.folds->next().start) {
    fit.keeps_weights = fit.keeps_weights || settings_.keep > 0;
    fit.counts_cost = objectives_.need_cost();
    fit.is_judged = settings_.pruner != nullptr;
    if (source) {
      fit.start = WarmStart{names_of(*source)[training.fits.size()], WarmStart::From::kCheckpoint};
    }
    TrialFit& planned = training.fits.emplace_back(TrialFit{.planned = std::move(fit)});
    for (const IntermediateValue& value : trial.inherited)
      planned.values.push_back({value.step, value.value});
  }
  return training;
}

std::unique_ptr<CrossValidation> TrialPlan::best_run_of(
    const std::shared_ptr<const ResolvedWorkflow>& document) const {
  const DocumentComponents components(run_.runtime, *document, run_.dataset());
  return std::make_unique<CrossValidation>(plan_, components.training_plan(),
                                           baselines_of(run_.runtime, *document), std::nullopt,
                                           document);
}

bool TrialPlan::copies_are_made(const StudyTrial& trial,
                                const std::vector<StudyTrial>& trials) const {
  return std::all_of(trials.begin(), trials.end(), [&](const StudyTrial& other) {
    if (other.now.copied_from != trial.now.number || other.jobs > 0)
      return true;
    const std::vector<std::string> fits = names_of(other.now.number);
    return std::none_of(fits.begin(), fits.end(), [&](const std::string& fit) {
      return CheckpointStore(run_.folder.checkpoints(fit)).newest().empty();
    });
  });
}

}  // namespace treadle::internal

#pragma once

#include <treadle/host/record/search_result.h>

#include "fields.h"

/// The layout of a search in result.json, and of ensemble.json.
namespace treadle::fields {

template <typename F>
void describe(F& f, Of<F, EnsembleResult::Member> member) {
  f("path", member.path);
  f("trial", member.trial);
  f("weight", member.weight);
}

template <typename F>
void describe(F& f, Of<F, EnsembleResult::Uncertainty> uncertainty) {
  f.if_any("total", uncertainty.total);
  f.if_any("aleatoric", uncertainty.aleatoric);
  f.if_any("epistemic", uncertainty.epistemic);
}

template <typename F>
void describe(F& f, Of<F, EnsembleResult> ensemble) {
  f("objective", ensemble.objective);
  f("validation", ensemble.validation);
  f("pool", ensemble.pool);
  f.if_any("intercept", ensemble.intercept);
  f.if_any("uncertainty", ensemble.uncertainty);
  f("members", ensemble.members);
  f.metrics("best_trial_test", ensemble.best_trial_test);
}

template <typename F>
void describe(F& f, Of<F, SearchResult::Objective> objective) {
  f("name", objective.name);
  f.either("direction", objective.maximizes, "maximize", "minimize");
}

template <typename F>
void describe(F& f, Of<F, SearchResult::Intermediate> value) {
  f("step", value.step);
  f("value", value.value);
}

template <typename F>
void describe(F& f, Of<F, SearchResult::Ended> ended) {
  f("reason", ended.reason);
  f("text", ended.text);
}

template <typename F>
void describe(F& f, Of<F, SearchResult::Trial> trial) {
  f("number", trial.number);
  f("state", trial.state);
  f("params", trial.params);
  f.if_any("values", trial.values);
  f.if_any("constraints", trial.constraints);
  f("intermediate", trial.intermediate);
  f.unless_default("error", trial.error);
  f.if_any("copied_from", trial.copied_from);
}

template <typename F>
void describe(F& f, Of<F, SearchResult> search) {
  f("tuner", search.tuner);
  f.unless_default("pruner", search.pruner);
  f("objectives", search.objectives);
  f("best_trial", search.best_trial);
  f.if_any("pareto_trials", search.pareto_trials);
  f("trials", search.trials);
  f("space", search.space);
  f("ended", search.ended);
  f.unless_default("asynchronous", search.asynchronous);
  if constexpr (!F::kWrites)
    search.wants_ensemble = f.has("ensemble");
  if (search.wants_ensemble)
    f.or_null("ensemble", search.ensemble);
}

}  // namespace treadle::fields

#include "run/evaluated_outputs.h"

#include <algorithm>
#include <utility>

#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>

#include <treadle/base/error.h>

#include "components/document_metrics.h"
#include "evaluation/breakdowns.h"
#include "result/fit_results.h"

namespace treadle::internal {
namespace {

/// Whether each fold trains on rows before those it is validated on: a walk through time.
bool is_walk(const ValidationPlan& plan) {
  return plan.folds.size() > 1 &&
         std::all_of(plan.folds.begin(), plan.folds.end(), [](const Fold& fold) {
           if (fold.training.empty() || fold.validation.empty())
             return false;
           const auto last = *std::max_element(fold.training.begin(), fold.training.end());
           return last < *std::min_element(fold.validation.begin(), fold.validation.end());
         });
}

/// As OutputStage::fit() has it, where all are of one fold.
void number(KeptPredictions& kept, std::size_t fold) {
  for (Prediction& prediction : kept.predictions)
    prediction.fold_numbers =
        at::full({kept.rows.size()}, static_cast<std::int64_t>(fold), at::kLong);
}

/// Adds the predictions of the folds' models for the same rows.
void add_folds(std::span<const CompletedFit> folds, KeptPredictions& kept) {
  std::vector<std::vector<at::Tensor>> of_targets(kept.predictions.size());
  for (const CompletedFit& fold : folds) {
    const std::optional<KeptPredictions> of_fold = kept_in(fold.for_outputs);
    TREADLE_EXPECTS(of_fold && of_fold->rows.rows.equal(kept.rows.rows),
                    "the model of each fold predicts the test rows");
    for (std::size_t target = 0; target < of_targets.size(); ++target)
      of_targets[target].push_back(of_fold->predictions[target].values);
  }
  for (std::size_t target = 0; target < of_targets.size(); ++target)
    kept.predictions[target].folds = at::stack(of_targets[target]);
}

std::optional<EvaluationResult>& measured(FitResult& result) {
  return result.test ? result.test : result.validation;
}

}  // namespace

EvaluatedOutputs::EvaluatedOutputs(const RunParts& run, const ResolvedWorkflow& workflow,
                                   const CrossValidation& plan, const KeptPredictions* of_ensemble)
    : run_(run), workflow_(workflow), folds_(plan.folds().size()) {
  if (!has_outputs(workflow))
    return;
  const std::vector<CompletedFit>& folds = plan.folds();
  record_.emplace();
  std::vector<KeptPredictions> learn;
  record_->rows_from = "folds";
  const auto take = [&](const std::vector<CompletedFit>& fits) {
    for (const CompletedFit& fit : fits) {
      if (auto kept = kept_in(fit.report_metrics))
        learn.push_back(*std::move(kept));
    }
  };
  const bool needs_folds = run_.components().outputs_need_folds();
  if (!needs_folds && !folds.front().for_outputs.empty()) {
    record_->rows_from = "set_aside";
    if (auto kept = kept_in(folds.front().for_outputs))
      learn.push_back(*std::move(kept));
  } else if (folds.size() == 1 && !plan.inner(0).empty()) {
    take(plan.inner(0));
  } else {
    take(folds);
    for (std::size_t i = 0; needs_folds && i < learn.size(); ++i)
      number(learn[i], i);
  }
  if (learn.empty()) {
    throw DataError(
        "outputs learn from rows that the model was not trained on, and this "
        "validation leaves none; leave \"outputs\" out, or choose another validation");
  }
  const KeptPredictions of_fits = joined(learn);
  stages_ = learned_from(of_fits);
  if (stages_.all_need_folds()) {
    // Every model but its own was trained on a row of a fold.
    for (const Fold& fold : plan.plan().folds)
      record_->not_evaluated.push_back(fold.name);
  } else if (folds.size() == 1) {
    // A fold of which the stages of the model have learned is no judge of them.
    if (record_->rows_from == "set_aside" || !plan.inner(0).empty())
      folds_[0] = with_stages(folds[0], stages_);
    else
      record_->not_evaluated.push_back(plan.plan().folds[0].name);
  } else {
    const bool walks = is_walk(plan.plan());
    std::vector<KeptPredictions> kept;
    for (std::size_t i = 0; i < folds.size(); ++i) {
      kept.push_back(kept_in(folds[i].report_metrics).value());
      if (needs_folds)
        number(kept.back(), i);
    }
    for (std::size_t i = 0; i < folds.size(); ++i) {
      std::vector<KeptPredictions> others;
      for (std::size_t k = 0; k < folds.size(); ++k) {
        if (k != i && !(walks && k > i))
          others.push_back(without(kept[k], kept[i].rows.rows));
      }
      if (others.empty())
        record_->not_evaluated.push_back(plan.plan().folds[i].name);
      else
        folds_[i] = with_stages(folds[i], learned_from(joined(others)));
    }
  }
  if (plan.plan().refit && plan.chosen().result.test)
    refit_ = with_stages(plan.chosen(), stages_,
                         needs_folds ? std::span(folds) : std::span<const CompletedFit>());
  note_effect(folds);
  if (of_ensemble != nullptr)
    stages_ = learned_from(*of_ensemble);
  record_->rows = (of_ensemble != nullptr ? *of_ensemble : of_fits).rows.size();
  for (OutputStages::Learned& one : stages_.learned())
    record_->stages.push_back({one.stage, one.target, std::move(one.values)});
}

OutputStages EvaluatedOutputs::learned_from(const KeptPredictions& kept) const {
  OutputStages stages(run_.runtime, workflow_, run_.components().data_spec().targets);
  stages.fit(kept.predictions, kept.rows);
  return stages;
}

EvaluatedOutputs::Fit EvaluatedOutputs::with_stages(const CompletedFit& fit,
                                                    const OutputStages& stages,
                                                    std::span<const CompletedFit> folds) const {
  Fit result{fit.result, make_report_metrics(run_.components())};
  std::optional<EvaluationResult>& evaluation = measured(result.result);
  std::optional<KeptPredictions> kept = kept_in(fit.report_metrics);
  if (!evaluation || !kept)
    return result;
  if (!folds.empty())
    add_folds(folds, *kept);
  Evaluated evaluated = evaluate(*kept, fit.fitted_metrics, stages);
  evaluation->metrics = std::move(evaluated.result.metrics);
  evaluation->tables = std::move(evaluated.result.tables);
  result.report_metrics = std::move(evaluated.report_metrics);
  return result;
}

EvaluatedOutputs::Evaluated EvaluatedOutputs::evaluate(const KeptPredictions& kept,
                                                       const FittedMetrics& fitted) const {
  return evaluate(kept, fitted, stages_);
}

EvaluatedOutputs::Evaluated EvaluatedOutputs::evaluate(const KeptPredictions& kept,
                                                       const FittedMetrics& fitted,
                                                       const OutputStages& stages) const {
  Evaluated result{{stages.apply(kept.predictions, kept.rows), kept.rows},
                   {},
                   make_report_metrics(run_.components())};
  const std::vector<Metric> metrics = make_metrics(run_.components());
  const EvaluatedRows data = run_.dataset().evaluated();
  fitted.use_in(metrics, data.rows->groups());
  std::vector<std::int64_t> rows(kept.rows.rows.data_ptr<std::int64_t>(),
                                 kept.rows.rows.data_ptr<std::int64_t>() + kept.rows.size());
  ready_breakdowns(result.report_metrics, fitted, data, RowList(std::move(rows)));
  MetricResult all;
  const auto evaluate = [&](const std::vector<Metric>& some) {
    for (const Metric& metric : some) {
      metric.view().update(result.predictions.predictions, kept.rows);
      MetricResult part = metric.view().compute();
      std::move(part.values.begin(), part.values.end(), std::back_inserter(all.values));
      std::move(part.tables.begin(), part.tables.end(), std::back_inserter(all.tables));
    }
  };
  evaluate(metrics);
  evaluate(result.report_metrics);
  result.result.metrics = std::move(all.values);
  result.result.tables = result_tables(all.tables);
  result.result.sample_count = kept.rows.size();
  return result;
}

/// On the same rows.
void EvaluatedOutputs::note_effect(const std::vector<CompletedFit>& folds) {
  std::vector<FitResult> without;
  for (std::size_t i = 0; i < folds.size(); ++i) {
    if (folds_[i])
      without.push_back(folds[i].result);
  }
  if (without.empty())
    return;
  record_->metrics_without = summarize_folds(std::move(without)).mean_metrics;
}

}  // namespace treadle::internal

#include "run/run_result.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <treadle/base/atomic_file.h>
#include <treadle/host/run/report.h>
#include <treadle/host/run/state_folder.h>

#include "components/document_metrics.h"
#include "events/trace.h"
#include "model/prediction_pool.h"
#include "predict/explained_rows.h"
#include "result/data_facts.h"
#include "result/fit_results.h"
#include "result/plan_record.h"
#include "run/decision_tables.h"
#include "run/evaluated_outputs.h"
#include "run/predictions_file.h"
#include "runtime/run_record.h"

// The end of a run: result and report from the fits' records. Records are JSON, so fits of earlier
// processes and of this one are treated alike.
//
// result.json is written last. Its existence means that the run is finished: resume_run() then
// returns it and trains nothing.

namespace treadle::internal {
namespace {

/// The report's metrics of a fold, as outputs leave them.
const std::vector<Metric>& report_metrics_of(const CrossValidation& plan,
                                             const EvaluatedOutputs& outputs, std::size_t fold) {
  const EvaluatedOutputs::Fit* const changed = outputs.fold(fold);
  return changed != nullptr ? changed->report_metrics : plan.folds()[fold].report_metrics;
}

const FitResult& result_of(const CrossValidation& plan, const EvaluatedOutputs& outputs,
                           std::size_t fold) {
  const EvaluatedOutputs::Fit* const changed = outputs.fold(fold);
  return changed != nullptr ? changed->result : plan.folds()[fold].result;
}

/// The tables of all folds put together.
std::vector<ResultTable> pooled_tables(const DocumentComponents& components,
                                       const CrossValidation& plan,
                                       const EvaluatedOutputs& outputs) {
  std::vector<MetricTable> tables;
  const std::vector<Metric> report_metrics = make_report_metrics(components);
  for (std::size_t index = 0; index < report_metrics.size(); ++index) {
    const Metric& metric = report_metrics[index];
    bool any = false;
    for (std::size_t fold = 0; fold < plan.folds().size(); ++fold) {
      const std::vector<Metric>& of_fold = report_metrics_of(plan, outputs, fold);
      if (index < of_fold.size()) {
        metric.computer->merge(*of_fold[index].computer);
        any = true;
      }
    }
    if (!any)
      continue;
    for (MetricTable& table : metric.view().compute().tables)
      tables.push_back(std::move(table));
  }
  return result_tables(tables);
}

std::vector<FitResult> results_of(const std::vector<CompletedFit>& fits) {
  std::vector<FitResult> results;
  for (const CompletedFit& fit : fits)
    results.push_back(fit.result);
  return results;
}

/// The result of each baseline on the rows that measure the model: of several folds the means.
std::vector<BaselineResult> baseline_results(const CrossValidation& plan) {
  std::vector<BaselineResult> results;
  for (std::size_t i = 0; i < plan.baselines().size(); ++i) {
    const CrossValidationResult summary = summarize_folds(results_of(plan.baseline(i)));
    const FitResult& first = summary.fold_results.front();
    BaselineResult& result = results.emplace_back();
    result.name = plan.baselines()[i].name;
    result.evaluated_on = first.evaluated_on();
    result.loss = summary.mean_loss;
    result.metrics = summary.mean_metrics;
    result.parameter_count = first.model_info.parameter_count;
    for (const FitResult& fold : summary.fold_results)
      result.training_time_seconds += fold.training_time_seconds;
  }
  return results;
}

/// Predictions of the models of the folds for the rows that measure them, with outputs.
std::vector<FoldPredictions> predictions_of_folds(
    const CrossValidation& plan, const EvaluatedOutputs& outputs,
    const std::optional<EvaluatedOutputs::Evaluated>& ensemble) {
  if (ensemble && plan.folds().size() == 1)  // the fold is of the best trial, on the same rows
    return {{plan.plan().folds[0].name, ensemble->predictions}};
  std::vector<std::string> names;
  std::vector<KeptPredictions> parts;
  for (std::size_t i = 0; i < plan.folds().size(); ++i) {
    if (auto kept = kept_in(report_metrics_of(plan, outputs, i))) {
      names.push_back(plan.plan().folds[i].name);
      parts.push_back(*std::move(kept));
    }
  }
  align(parts);
  std::vector<FoldPredictions> folds;
  for (std::size_t i = 0; i < parts.size(); ++i)
    folds.push_back({names[i], std::move(parts[i])});
  return folds;
}

/// The ensemble predicts in place of the best trial, whose metrics on the test rows are kept
/// beside.
void measure_ensemble(const EvaluatedOutputs::Evaluated& evaluated, EnsembleResult& ensemble,
                      FitResult& training) {
  if (training.test)
    ensemble.best_trial_test = std::move(training.test->metrics);
  training.test = evaluated.result;
  training.test->loss = Number::undefined(kNoLossOfEnsemble);
}

/// Of the rows that measure the model, or of all folds together.
void add_decision_tables(const RunParts& run, const std::vector<FoldPredictions>& kept,
                         RunResult& result) {
  if (kept.empty())
    return;
  const bool are_of_test = !result.cross_validation && result.training.test.has_value();
  std::vector<ResultTable>& to = are_of_test ? result.training.test->tables : result.tables;
  std::vector<KeptPredictions> parts;
  for (const FoldPredictions& of_fold : kept)
    parts.push_back(of_fold.kept);
  for (ResultTable& table : decision_tables(run.components(), joined(parts))) {
    const bool is_there = std::any_of(
        to.begin(), to.end(), [&](const ResultTable& other) { return other.name == table.name; });
    if (!is_there)
      to.push_back(std::move(table));
  }
}

/// The chosen fit's result, and what the folds came to together.
RunResult result_of_fits(const RunParts& run, const CrossValidation& plan,
                         const EvaluatedOutputs& outputs) {
  const std::vector<CompletedFit>& folds = plan.folds();
  RunResult result;
  const FitResult& chosen = !plan.plan().refit           ? result_of(plan, outputs, 0)
                            : outputs.refit() != nullptr ? outputs.refit()->result
                                                         : plan.chosen().result;
  if (plan.has_single_model()) {
    result.training = chosen;
    result.model_path = run.folder.weights().filename().string();
  } else {
    // The rest is of the first fold, which is no model of the run.
    result.training.model_info = chosen.model_info;
    result.training.transformed_target = chosen.transformed_target;
    result.training.forward_cost = chosen.forward_cost;
  }
  // One fold is a plan of folds as well, where a model of all rows follows.
  if (folds.size() > 1 || plan.plan().refit) {
    std::vector<FitResult> results;
    for (std::size_t i = 0; i < folds.size(); ++i) {
      results.push_back(result_of(plan, outputs, i));
      results.back().name = plan.plan().folds[i].name;
    }
    CrossValidationResult& summary =
        result.cross_validation.emplace(summarize_folds(std::move(results)));
    for (std::size_t i = 0; i < folds.size() && !plan.inner(i).empty(); ++i)
      summary.inner.push_back(summarize_folds(results_of(plan.inner(i))));
    result.tables = pooled_tables(run.components(), plan, outputs);
  } else {
    // One fold's tables, those of the document's own metrics among them.
    const FitResult& fold = result_of(plan, outputs, 0);
    if (const std::optional<EvaluationResult>& part = fold.validation ? fold.validation : fold.test)
      result.tables = part->tables;
    if (result.training.validation)
      result.training.validation->tables.clear();
  }
  result.outputs = outputs.record();
  result.baselines = baseline_results(plan);
  result.plan = plan_record(run.components().split_request(), plan.plan());
  return result;
}

}  // namespace

TimeResult time_of(const RunParts& run) {
  const DocumentComponents& components = run.components();
  return time_result(run.timeline, run.budget.workers(), components.shards(),
                     !components.device().device().is_cpu());
}

namespace {

void add_facts_of_run(RunParts& run, const ProcessFacts& facts, RunResult& result) {
  const DocumentComponents& components = run.components();
  result.started_at = run.log.started_at();
  result.task = task_of(components.data_spec().targets);
  result.choices = run.conditions().choices();
  if (const std::string& execution = result.training.model_info.execution; !execution.empty())
    result.choices.push_back("execution: " + execution);
  result.data = data_facts(components.dataset());
  result.environment = run.conditions().environment();
  result.environment["baseline_memory_bytes"] = facts.baseline_memory;
  result.environment["peak_memory_bytes"] = peak_memory_bytes();
  const RunDevice& device = components.device();
  const bool has_device = !device.device().is_cpu();
  result.time = time_of(run);
  result.time.ranks = facts.ranks;
  if (has_device)
    result.device = device_result(run.timeline, device.name);
  result.extensions = run.workflow().resolved.value("extensions", nlohmann::json::object());
}

/// Of the training that the run's model is from.
void add_milestones(const std::vector<TrainingCurve>& curves, RunResult& result) {
  const auto curve = std::find_if(curves.begin(), curves.end(), [&](const TrainingCurve& one) {
    return one.fit == result.training.name;
  });
  if (curve == curves.end() || !result.has_model())
    return;
  const std::vector<MetricValue>& metrics = result.metrics();
  Milestones milestones =
      milestones_of(*curve, metrics.empty() ? MetricValue{"loss", {}, Direction::kLowerIsBetter}
                                            : metrics.front());
  if (!milestones.reached.empty())
    result.training.milestones = std::move(milestones);
}

void move_tables_out(const RunFolder& folder, RunResult& result) {
  const auto move = [&](std::vector<ResultTable>& tables, const std::filesystem::path& place) {
    move_large_tables(tables, folder.path(), place);
  };
  move(result.tables, folder.tables());
  if (result.training.test)
    move(result.training.test->tables, folder.tables() / "test");
  if (!result.cross_validation)
    return;
  for (FitResult& fold : result.cross_validation->fold_results) {
    const std::filesystem::path place = folder.tables() / fold.name;
    if (fold.validation)
      move(fold.validation->tables, place);
    if (fold.test)
      move(fold.test->tables, place / "test");
  }
}

/// Members of an earlier end of the search, which has gone on since, are
/// removed.
void leave_ensemble(const RunFolder& folder, const std::optional<EnsembleResult>& ensemble) {
  const std::filesystem::path file = RunFolder::ensemble_of(folder.path());
  std::set<std::filesystem::path> members;
  if (ensemble) {
    write_file_atomically(file, to_json(*ensemble).dump(2) + "\n");
    for (const EnsembleResult::Member& member : ensemble->members)
      members.insert(folder.path() / member.path);
  } else {
    std::filesystem::remove(file);
  }
  std::error_code none;
  std::vector<std::filesystem::path> others;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path() / "members", none)) {
    if (!members.contains(entry.path()))
      others.push_back(entry.path());
  }
  for (const std::filesystem::path& other : others)
    std::filesystem::remove_all(other);
}

void write_outputs(const RunParts& run, const CrossValidation& plan,
                   const EvaluatedOutputs& outputs) {
  if (!outputs.stages().empty() && plan.has_single_model())
    write_state_folder(RunFolder::outputs_of(run.folder.path()), outputs.stages().state());
}

}  // namespace

RunResult write_run_result(RunParts& run, const CrossValidation& plan, const Study* study,
                           const StudyEnsemble* ensemble, const ProcessFacts& facts) {
  std::vector<std::string> names = study != nullptr ? study->names() : plan.names();
  std::optional<EnsembleResult> members;
  if (ensemble != nullptr) {
    const std::vector<std::string> of_members = ensemble->names();
    names.insert(names.end(), of_members.begin(), of_members.end());
    members = ensemble->record();
  }
  const ResolvedWorkflow& made_by = study != nullptr ? study->best_document() : run.workflow();
  const bool are_pooled = ensemble != nullptr && ensemble->predictions();
  const EvaluatedOutputs outputs(run, made_by, plan,
                                 are_pooled ? &*ensemble->predictions() : nullptr);
  std::optional<EvaluatedOutputs::Evaluated> of_ensemble;
  if (const auto tested = are_pooled ? ensemble->tested() : std::nullopt)
    of_ensemble = outputs.evaluate(tested->predictions, tested->fitted_metrics);
  const std::vector<FoldPredictions> kept = predictions_of_folds(plan, outputs, of_ensemble);
  RunResult result = result_of_fits(run, plan, outputs);
  if (of_ensemble)
    measure_ensemble(*of_ensemble, *members, result.training);
  add_decision_tables(run, kept, result);
  if (study != nullptr)
    result.search = study->record();
  if (ensemble != nullptr) {
    result.search->wants_ensemble = true;
    result.search->ensemble = members;
  }
  add_facts_of_run(run, facts, result);
  saying_how_to_go_on(run.folder, [&] { run.log.finish(names); });
  std::vector<TrainingCurve> curves = run.log.curves(names);
  add_milestones(curves, result);
  ReportInput report{run.workflow().name, result, run.workflow().resolved, std::move(curves),
                     plan.chosen().drawing};
  saying_how_to_go_on(run.folder, [&] {
    if (study != nullptr) {
      write_file_atomically(RunFolder::best_document_of(run.folder.path()),
                            write_workflow(study->best_document().resolved));
    }
    leave_ensemble(run.folder, members);
    write_outputs(run, plan, outputs);
    if (!kept.empty())
      write_predictions_file(run.runtime, run.folder.path() / "predictions.csv", run.components(),
                             kept);
    if (explains(run.workflow())) {
      report.reasons =
          explain_own_rows(run.runtime, run.folder.path(), made_by, run.dataset(), result);
      write_file_atomically(run.folder.explanation(), report.reasons.dump(2) + "\n");
    }
    write_file_atomically(run.folder.report(), render_report(report));
    move_tables_out(run.folder, result);
    write_file_atomically(run.folder.result(), to_json(result).dump(2) + "\n");
  });
  return result;
}

}  // namespace treadle::internal

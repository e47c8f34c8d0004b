#include "run/run_result.h"

#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <treadle/base/atomic_file.h>
#include <treadle/host/run/report.h>

#include "events/trace.h"
#include "result/data_facts.h"
#include "result/plan_record.h"
#include "result/result_json.h"
#include "runtime/run_record.h"

// The end of a run: result and report from the fits' records. Records are JSON, so fits of earlier
// processes and of this one are treated alike.
//
// result.json is written last. Its existence means that the run is finished: resume_run() then
// returns it and trains nothing.

namespace treadle::internal {
namespace {

/// The tables of all folds put together.
nlohmann::json pooled_tables(const DocumentComponents& components,
                             const std::vector<FitResult>& folds) {
  std::vector<MetricTable> tables;
  const std::vector<Metric> report_metrics = components.make_report_metrics();
  for (std::size_t index = 0; index < report_metrics.size(); ++index) {
    const Metric& metric = report_metrics[index];
    bool any = false;
    for (const FitResult& fold : folds) {
      if (index < fold.report_metrics.size()) {
        metric.computer->merge(*fold.report_metrics[index].computer);
        any = true;
      }
    }
    if (!any)
      continue;
    for (MetricTable& table : metric.view().compute().tables)
      tables.push_back(std::move(table));
  }
  return to_json(tables);
}

nlohmann::json results_of(const std::vector<FitResult>& fits) {
  nlohmann::json results = nlohmann::json::array();
  for (const FitResult& fit : fits) {
    results.push_back(fit.result);
    results.back().erase("drawing");
  }
  return results;
}

/// What each baseline came to on the rows that judge the model: of several folds the means.
nlohmann::json baseline_records(const CrossValidation& plan) {
  nlohmann::json records = nlohmann::json::array();
  for (std::size_t i = 0; i < plan.baselines().size(); ++i) {
    const nlohmann::json summary = cross_validation_summary(results_of(plan.baseline(i)));
    const nlohmann::json& first = summary.at("fold_results").front();
    nlohmann::json record = {{"name", plan.baselines()[i].name},
                             {"evaluated_on", judging_key(first)},
                             {"loss", summary.at("mean_loss")},
                             {"metrics", summary.at("mean_metrics")},
                             {"parameter_count", first.at("model_info").at("parameter_count")},
                             {"training_time_seconds", 0.0}};
    for (const nlohmann::json& fold : summary.at("fold_results")) {
      record["training_time_seconds"] = record["training_time_seconds"].get<double>() +
                                        fold.at("training_time_seconds").get<double>();
    }
    records.push_back(std::move(record));
  }
  return records;
}

/// What is said of the training that the run's model is from.
constexpr const char* kOfOneModel[] = {
    "final_loss",     "best_loss",    "best_epoch",    "total_epochs", "stop_reason",
    "weights",        "validation",   "test",          "rows",         "training_time_seconds",
    "replayed_steps", "not_captured", "skipped_steps", "prequential",  "structures",
};

/// The chosen fit's result, and what the folds came to together.
nlohmann::json result_of_fits(const RunParts& run, const CrossValidation& plan) {
  const std::vector<FitResult>& folds = plan.folds();
  nlohmann::json result = plan.chosen().result;
  result.erase("name");
  result.erase("drawing");
  result["model_path"] = plan.has_single_model() ? run.folder.weights().filename().string() : "";
  if (!plan.has_single_model()) {
    // It is the first fold's, and that is no model of the run.
    for (const char* const key : kOfOneModel)
      result.erase(key);
  }
  // One fold is a plan of folds as well, where a model of all rows follows.
  if (folds.size() > 1 || plan.plan().refit) {
    nlohmann::json results = results_of(folds);
    for (std::size_t i = 0; i < results.size(); ++i) {
      results[i]["name"] = plan.plan().folds[i].name;
      results[i]["metrics"] = judging_part(results[i]).at("metrics");
      if (!plan.inner(i).empty())
        results[i]["inner"] = cross_validation_summary(results_of(plan.inner(i)));
    }
    result.update(cross_validation_summary(results));
    result["folds_evaluated_on"] = results.front().contains("test") ? "test" : "validation";
    result["metrics"] = result.at("mean_metrics");
    result["tables"] = pooled_tables(run.components(), folds);
  } else {
    // One fold's tables, those of the document's own metrics among them.
    const nlohmann::json& fold = folds.front().result;
    const auto& part = fold.contains("validation") ? fold.at("validation") : judging_part(fold);
    result["tables"] = part.value("tables", nlohmann::json::array());
    if (result.contains("validation"))
      result.at("validation").erase("tables");
  }
  result["evaluated_on"] = judging_key(result);
  result["metric_list"] = judging_part(folds.front().result).at("metric_list");
  if (nlohmann::json baselines = baseline_records(plan); !baselines.empty())
    result["baselines"] = std::move(baselines);
  if (nlohmann::json stretches = plan_record(run.components().split_request(), plan.plan());
      !stretches.is_null())
    result["plan"] = std::move(stretches);
  return result;
}

void add_facts_of_run(RunParts& run, std::int64_t baseline_memory, nlohmann::json& result) {
  const DocumentComponents& components = run.components();
  result["started_at"] = run.log.started_at();
  result["task"] = components.task();
  result["choices"] = run.conditions().choices();
  if (const auto& info = result.at("model_info"); info.contains("execution"))
    result["choices"].push_back("execution: " + info.at("execution").get<std::string>());
  result["data"] = data_facts(components.dataset());
  result["environment"] = run.conditions().environment();
  result["environment"]["baseline_memory_bytes"] = baseline_memory;
  result["environment"]["peak_memory_bytes"] = peak_memory_bytes();
  const RunDevice& device = components.device();
  const bool has_device = !device.device().is_cpu();
  result["time"] = time_record(run.timeline, run.budget.workers(), components.shards(), has_device);
  if (has_device)
    result["device"] = device_record(run.timeline, device.name);
  result["extensions"] = run.workflow().resolved.value("extensions", nlohmann::json::object());
}

void move_tables_out(const RunFolder& folder, nlohmann::json& result) {
  move_large_tables(result["tables"], folder.path(), folder.tables());
  if (result.contains("test"))
    move_large_tables(result["test"].at("tables"), folder.path(), folder.tables() / "test");
  if (!result.contains("fold_results"))
    return;
  for (nlohmann::json& fold : result["fold_results"]) {
    for (const char* part : {"validation", "test"}) {
      if (fold.contains(part)) {
        move_large_tables(fold.at(part).at("tables"), folder.path(),
                          folder.tables() / fold.at("name").get<std::string>() /
                              (part == std::string_view("test") ? "test" : ""));
      }
    }
  }
}

/// Null: there is none. Members of an earlier end of the search, which has gone on since, are
/// removed.
void leave_ensemble(const RunFolder& folder, const nlohmann::json& ensemble) {
  const std::filesystem::path file = RunFolder::ensemble_of(folder.path());
  if (ensemble.is_null()) {
    std::filesystem::remove(file);
  } else {
    write_file_atomically(file, ensemble.dump(2) + "\n");
  }
  std::set<std::filesystem::path> members;
  const nlohmann::json listed =
      ensemble.is_null() ? nlohmann::json::array() : ensemble.at("members");
  for (const nlohmann::json& member : listed)
    members.insert(folder.path() / member.at("path").get<std::string>());
  std::error_code none;
  std::vector<std::filesystem::path> others;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path() / "members", none)) {
    if (!members.contains(entry.path()))
      others.push_back(entry.path());
  }
  for (const std::filesystem::path& other : others)
    std::filesystem::remove_all(other);
}

}  // namespace

nlohmann::json write_run_result(RunParts& run, const CrossValidation& plan, const Study* study,
                                const StudyEnsemble* ensemble, std::int64_t baseline_memory) {
  std::vector<std::string> names = study != nullptr ? study->names() : plan.names();
  nlohmann::json members = nullptr;
  if (ensemble != nullptr) {
    const std::vector<std::string> of_members = ensemble->names();
    names.insert(names.end(), of_members.begin(), of_members.end());
    members = ensemble->record();
  }
  nlohmann::json result = result_of_fits(run, plan);
  if (study != nullptr)
    result["search"] = study->record();
  if (ensemble != nullptr)  // null: one was asked for, and there is none
    result["search"]["ensemble"] = members;
  add_facts_of_run(run, baseline_memory, result);
  saying_how_to_go_on(run.folder, [&] { run.log.finish(names); });
  const nlohmann::json drawing = plan.chosen().result.value("drawing", nlohmann::json::object());
  const ReportInput report{
      run.workflow().name,
      result,
      run.workflow().resolved,
      run.log.curves(names),
      {drawing.value("parts", std::vector<std::vector<std::string>>()), drawing.value("svg", "")}};
  saying_how_to_go_on(run.folder, [&] {
    if (study != nullptr) {
      write_file_atomically(RunFolder::best_document_of(run.folder.path()),
                            write_workflow(study->best_document().resolved));
    }
    leave_ensemble(run.folder, members);
    write_file_atomically(run.folder.report(), render_report(report));
    move_tables_out(run.folder, result);
    write_file_atomically(run.folder.result(), result.dump(2) + "\n");
  });
  return result;
}

}  // namespace treadle::internal

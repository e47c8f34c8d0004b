#include <treadle/host/record/run_result.h>

#include <fstream>

#include <treadle/base/error.h>
#include <treadle/base/json_text.h>

#include "result_fields.h"
#include "search_fields.h"

namespace treadle {
namespace fields {

template <typename F>
void describe(F& f, Of<F, BaselineResult> baseline) {
  f("name", baseline.name);
  f("evaluated_on", baseline.evaluated_on);
  f.scores(baseline.loss, baseline.metrics);
  f("parameter_count", baseline.parameter_count);
  f("training_time_seconds", baseline.training_time_seconds);
}

template <typename F>
void describe(F& f, Of<F, RankTime> rank) {
  f("host", rank.host);
  f("exchange_seconds", rank.exchange_seconds);
  f("waiting_share", rank.waiting_share);
  f("budget_used", rank.budget_used);
}

template <typename F>
void describe(F& f, Of<F, TimeResult> time) {
  f("seconds", time.seconds);
  f("workers", time.workers);
  f("shards", time.shards);
  f("phases", time.phases);
  f("budget_used", time.budget_used);
  f("training_rows_per_second", time.training_rows_per_second);
  f.if_any("ranks", time.ranks);
}

template <typename F>
void describe(F& f, Of<F, DeviceResult> device) {
  f("name", device.name);
  f("copies_to_device", device.copies_to_device);
  f("bytes_to_device", device.bytes_to_device);
  f("copies_to_host", device.copies_to_host);
  f("bytes_to_host", device.bytes_to_host);
  f("waits", device.waits);
  f("seconds_waiting", device.seconds_waiting);
  f("memory_peak_bytes", device.memory_peak_bytes);
  f("memory_reserved_bytes", device.memory_reserved_bytes);
  f("busy_seconds", device.busy_seconds);
  f("idle_seconds", device.idle_seconds);
  f("idle_fraction", device.idle_fraction);
}

template <typename F>
void describe(F& f, Of<F, OutputsResult::Stage> stage) {
  f("name", stage.name);
  f.unless_default("target", stage.target);
  f.metrics("learned", stage.learned);
}

template <typename F>
void describe(F& f, Of<F, OutputsResult> outputs) {
  f("rows_from", outputs.rows_from);
  f("rows", outputs.rows);
  f("stages", outputs.stages);
  f.metrics("metrics_without", outputs.metrics_without);
  f.if_any("not_evaluated", outputs.not_evaluated);
}

template <typename F>
void describe(F& f, Of<F, RunResult> result) {
  f("model_path", result.model_path);
  model_fields(f, result.training);
  if (result.has_model())
    training_fields(f, result.training);
  if constexpr (F::kWrites) {
    if (result.cross_validation)
      describe(f, *result.cross_validation);
  } else if (f.has("fold_results")) {
    describe(f, result.cross_validation.emplace());
  }
  f("tables", result.tables);
  f.if_any("baselines", result.baselines);
  f("started_at", result.started_at);
  f("task", result.task);
  f("choices", result.choices);
  f("time", result.time);
  f.if_any("device", result.device);
  f("data", result.data);
  f("environment", result.environment);
  f.if_any("plan", result.plan);
  f.if_any("search", result.search);
  f.if_any("outputs", result.outputs);
  f("extensions", result.extensions);
}

template <typename F>
void describe(F& f, Of<F, StageResult> result) {
  f("stage", result.stage);
  f("kind", result.kind);
  f("folder", result.folder);
  f("reused", result.reused);
  f.if_any("rows", result.rows);
  f.unless_default("evaluated_on", result.evaluated_on);
  if (!F::kWrites || !result.evaluated_on.empty())
    f.metrics("metrics", result.metrics);
  f.if_any("loss", result.loss);
  f.if_any("best_loss", result.best_loss);
  f.if_any("final_loss", result.final_loss);
}

template <typename F>
void describe(F& f, Of<F, PipelineResult> result) {
  f("pipeline", result.pipeline);
  f("stages", result.stages);
}

}  // namespace fields

namespace {

/// For readers of the file: values derived from the rest.
void add_derived(const RunResult& result, fields::FieldWriter& writer, nlohmann::json& stored) {
  writer("evaluated_on", std::string(result.training.evaluated_on()));
  writer.metrics("metrics", result.metrics());
  const FitResult& measured =
      result.cross_validation ? result.cross_validation->fold_results.front() : result.training;
  if (const Scores* const scores = measured.evaluated())
    writer.metric_list("metric_list", scores->metrics);
  if (result.cross_validation)
    writer("folds_evaluated_on", std::string(result.cross_validation->evaluated_on()));
  // Those of the run are the same.
  if (!result.cross_validation && stored.contains("validation"))
    stored.at("validation").erase("tables");
}

}  // namespace

const Number& RunResult::loss() const {
  if (cross_validation)
    return cross_validation->mean_loss;
  const Scores* const scores = training.validated();
  return scores != nullptr ? scores->loss : training.final_loss;
}

const std::vector<MetricValue>& RunResult::metrics() const {
  static const std::vector<MetricValue> none;
  if (cross_validation)
    return cross_validation->mean_metrics;
  const Scores* const scores = training.validated();
  return scores != nullptr ? scores->metrics : none;
}

const Number& RunResult::at(std::string_view name) const {
  if (name == "loss")
    return loss();
  for (const MetricValue& metric : metrics()) {
    if (metric.name == name)
      return metric.value;
  }
  return Scores{loss(), metrics()}.at(name);  // throws
}

nlohmann::json to_json(const RunResult& result) {
  nlohmann::json stored = nlohmann::json::object();
  fields::FieldWriter writer(stored);
  describe(writer, result);
  add_derived(result, writer, stored);
  return stored;
}

RunResult run_result_from(const nlohmann::json& stored, const std::string& place) {
  return fields::read<RunResult>(stored, place);
}

nlohmann::json to_json(const DeviceResult& result) {
  return fields::written(result);
}

nlohmann::json to_json(const StageResult& result) {
  return fields::written(result);
}

nlohmann::json to_json(const PipelineResult& result) {
  return fields::written(result);
}

StageResult stage_result_from(const nlohmann::json& stored, const std::string& place) {
  return fields::read<StageResult>(stored, place);
}

PipelineResult pipeline_result_from(const nlohmann::json& stored, const std::string& place) {
  return fields::read<PipelineResult>(stored, place);
}

RunResult read_run_result(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file)
    throw StorageError(path.string() + ": cannot be read; the run may not have finished");
  const nlohmann::json stored = parse_json(file);
  if (stored.is_discarded()) {
    throw StorageError(path.string() +
                       ": is damaged: it is not JSON; restore the file, or delete it and resume "
                       "the run, which writes it again");
  }
  return run_result_from(stored, path.string());
}

}  // namespace treadle

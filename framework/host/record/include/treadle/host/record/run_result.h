#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/host/record/fit_result.h>
#include <treadle/host/record/search_result.h>

namespace treadle {

/// A model without training to compare with, on the rows that measure the run's; of several folds
/// the means.
struct BaselineResult : Scores {
  std::string name;
  std::string evaluated_on;
  std::int64_t parameter_count = 0;
  double training_time_seconds = 0;
};

/// Of one of several processes that trained a run together.
struct RankTime {
  std::string host;
  double exchange_seconds = 0;  ///< in exchanges, waiting for other processes included
  double waiting_share = 0;     ///< the same as a part of its wall time after loading
  double budget_used = 0;       ///< part of its workers' time
};

/// The time of the process that ended a run: of several, that of rank 0.
struct TimeResult {
  double seconds = 0;  ///< wall time
  std::int64_t workers = 0;
  std::int64_t shards = 0;
  std::map<std::string, double> phases;  ///< seconds by phase, over all workers
  double budget_used = 0;                ///< part of seconds * workers
  double training_rows_per_second = 0;
  std::vector<RankTime> ranks;  ///< of several processes, rank 0 first; else empty
};

/// A run's use of a device that is not the CPU.
struct DeviceResult {
  std::string name;
  std::int64_t copies_to_device = 0;
  std::int64_t bytes_to_device = 0;
  std::int64_t copies_to_host = 0;
  std::int64_t bytes_to_host = 0;
  std::int64_t waits = 0;  ///< of the host
  double seconds_waiting = 0;
  std::int64_t memory_peak_bytes = 0;
  std::int64_t memory_reserved_bytes = 0;
  double busy_seconds = 0;  ///< with steps
  double idle_seconds = 0;  ///< between steps
  double idle_fraction = 0;
};

/// The output stages of a run.
struct OutputsResult {
  struct Stage {
    std::string name;    ///< the component: "temperature"
    std::string target;  ///< empty: the data has one
    std::vector<MetricValue> learned;
  };

  /// The rows that the stages of the run's model learned from: "folds", each predicted by a model
  /// that was not trained on it, or "set_aside", training rows.
  std::string rows_from;
  std::int64_t rows = 0;
  std::vector<Stage> stages;
  /// The metrics without them, on the same rows: means over the folds that are evaluated with,
  /// or those of the one model.
  std::vector<MetricValue> metrics_without;
  /// Folds whose metrics are without: no fold is before them to learn from, or the stages predict
  /// with the models of all folds, which were trained on their rows.
  std::vector<std::string> not_evaluated;
};

/// The result of a run: result.json.
struct RunResult {
  /// The training that the run's model is from. Where there is no single model, its model_info and
  /// units alone, which all folds share.
  FitResult training;
  std::string model_path;  ///< of the weights, in the run's folder; empty without a single model
  std::optional<CrossValidationResult> cross_validation;
  std::vector<ResultTable> tables;  ///< of the validation rows, of all folds together
  std::vector<BaselineResult> baselines;
  std::optional<SearchResult> search;
  std::optional<OutputsResult> outputs;

  std::string started_at;            ///< UTC: "2026-05-04T10:11:12Z"
  std::string task;                  ///< "classification" or "regression"
  std::vector<std::string> choices;  ///< that the document left open, as sentences
  TimeResult time;
  std::optional<DeviceResult> device;  ///< nothing: the CPU

  // Facts that are shown and compared as they are.
  nlohmann::json data;
  nlohmann::json environment;
  nlohmann::json plan;        ///< the stretches of time of each fold; null of other splits
  nlohmann::json extensions;  ///< as in the document

  bool has_model() const { return !model_path.empty(); }
  /// The measure of the run where settings are chosen: means over the folds, else on the
  /// validation rows, else the loss of the last epoch.
  const Number& loss() const;
  /// Likewise; empty where nothing is validated.
  const std::vector<MetricValue>& metrics() const;
  /// "loss" or a metric. Throws UsageError, with the names there are.
  const Number& at(std::string_view name) const;
};

/// Of one stage of a pipeline. Members that its kind lacks are empty.
struct StageResult {
  std::string stage;
  std::string kind;  ///< "run", "search", "predict", "evaluate"
  std::string folder;
  bool reused = false;               ///< taken over from an earlier run of the pipeline
  std::optional<std::int64_t> rows;  ///< predicted
  std::string evaluated_on;
  std::vector<MetricValue> metrics;
  std::optional<Number> loss;
  std::optional<Number> best_loss;
  std::optional<Number> final_loss;
};

/// result.json of a pipeline.
struct PipelineResult {
  std::string pipeline;  ///< its name
  std::vector<StageResult> stages;
};

nlohmann::json to_json(const DeviceResult& result);
nlohmann::json to_json(const StageResult& result);
nlohmann::json to_json(const PipelineResult& result);
StageResult stage_result_from(const nlohmann::json& stored, const std::string& place);
PipelineResult pipeline_result_from(const nlohmann::json& stored, const std::string& place);

nlohmann::json to_json(const RunResult& result);
/// As fit_result_from().
RunResult run_result_from(const nlohmann::json& stored, const std::string& place);
/// Throws StorageError for a file that cannot be read or is damaged.
RunResult read_run_result(const std::filesystem::path& file);

}  // namespace treadle

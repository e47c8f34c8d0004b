#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/base/number.h>
#include <treadle/host/record/milestones.h>

/// The result of one training. docs/guide/results.md describes these values for readers of
/// result.json, where each has the name of its member.
namespace treadle {

/// The loss and the metrics of a model on some rows.
struct Scores {
  Number loss;
  std::vector<MetricValue> metrics;  ///< in the document's order

  /// "loss" or a metric; null where there is no such metric.
  const Number* find(std::string_view name) const;
  /// The same. Throws UsageError, with the names there are.
  const Number& at(std::string_view name) const;
};

/// A table of numbers, as a metric leaves it: in memory, or in a file where it is large.
struct ResultTable {
  std::string name;  ///< "confusion_matrix"
  std::vector<std::string> row_labels;
  std::vector<std::string> column_labels;
  std::vector<std::vector<Number>> values;  ///< by row; empty where it is in a file
  /// Of how many outputs of a model it has the rows; the first column is then the output.
  std::optional<std::int64_t> outputs;
  std::string file;       ///< a CSV, relative to the run's folder; empty: it is in `values`
  std::int64_t rows = 0;  ///< of the file
};

struct EvaluationResult : Scores {
  std::int64_t sample_count = 0;  ///< rows
  double seconds = 0;
  std::vector<ResultTable> tables;
  /// Of a file that a model is evaluated on: as in FitResult.
  std::optional<bool> transformed_target;
};

/// Which weights a training ended with.
struct ChosenWeights {
  std::int64_t epoch = 0;    ///< from 1
  bool are_best = false;     ///< else those of the last epoch
  std::string on;            ///< the rows that chose the best: "validation"; empty of the last
  std::string by;            ///< the measure that they are the best by; empty of the last
  bool are_average = false;  ///< over the steps before
};

/// How many rows a training was given, and a hash of the numbers of those that measured it: the
/// same rows of the same data have the same hash. Empty where there are none.
struct FitRowCounts {
  std::optional<std::int64_t> training;  ///< nothing: a stream, which may have no end
  std::int64_t validation = 0;
  std::string validation_hash;
  std::int64_t test = 0;
  std::string test_hash;
};

struct ModelInfo {
  using Shapes = std::map<std::string, std::vector<std::int64_t>>;

  std::string name;
  std::string version;
  nlohmann::json architecture;  ///< the document's "model"
  std::int64_t parameter_count = 0;
  std::map<std::string, std::int64_t> weight_bytes = {};  ///< by dtype, buffers included
  Shapes input_shape;                                     ///< by port, without the batch
  Shapes output_shape;                                    ///< likewise
  std::string execution;  ///< how a flow is run, where the document left it open
};

/// Of a forward pass of one row.
struct ForwardCostResult {
  double operations = 0;  ///< floating-point
  double bytes = 0;
  double calls = 0;
};

/// Steps that changed nothing, as the loss or a gradient was not finite.
struct SkippedSteps {
  std::int64_t count = 0;
  std::vector<std::int64_t> first;
};

/// Of a training that tests each batch before it trains on it: means over its windows.
struct PrequentialResult : Scores {
  struct Window : Scores {
    std::int64_t first_row = 0;
    std::int64_t rows = 0;
    std::string task;
  };
  /// A change of the task. Windows are counted from the one that contains its row, 0.
  struct Change {
    std::int64_t row = 0;
    std::string task;
    std::optional<std::int64_t> window;  ///< its index; nothing: the row was not reached
    std::optional<Scores> before;        ///< of the window before that
    std::optional<Scores> after;         ///< of that window
    std::optional<std::int64_t> windows_to_threshold;  ///< nothing: never, or not asked for
    std::optional<std::int64_t> windows_to_share;      ///< likewise
  };
  /// When a model counts as recovered from a change.
  struct Recovery {
    std::string metric;
    std::optional<double> threshold;
    std::optional<double> share;
  };

  std::int64_t sample_count = 0;  ///< rows of all windows
  std::int64_t window_rows = 0;   ///< of a full window
  std::vector<Window> windows;
  std::vector<Change> changes;
  Recovery recovery;
  std::optional<Scores> variances;  ///< over the windows, divided by their number
};

/// The choices of a structure search.
struct StructureResult {
  struct Choice {
    std::string name;
    std::string node;                       ///< where its output goes
    std::map<std::string, double> weights;  ///< by operation
    std::optional<std::string> chosen;      ///< nothing: the place is left out
  };
  std::string structure;
  std::vector<Choice> choices;
};

/// Of one training: that of the run's model, or of a fold.
struct FitResult {
  std::string name;               ///< its path: "final", "fold-1"
  Number final_loss;              ///< of the last epoch: validation loss, else training loss
  Number best_loss;               ///< by what chose the weights, else by the loss
  std::int64_t best_epoch = 0;    ///< from 1; 0: no epoch has a finite loss
  std::int64_t total_epochs = 0;  ///< trained
  std::string stop_reason;        ///< empty when all planned epochs were trained
  double training_time_seconds = 0;
  std::int64_t replayed_steps = 0;  ///< that a device replayed
  std::string not_captured;         ///< why a device replayed none; empty: nobody asked for it
  std::optional<SkippedSteps> skipped_steps;
  ChosenWeights weights;
  FitRowCounts rows;
  bool transformed_target = false;  ///< losses are in units of the transformed target
  ModelInfo model_info;
  std::optional<ForwardCostResult> forward_cost;
  std::optional<EvaluationResult> validation;
  std::optional<EvaluationResult> test;
  std::optional<PrequentialResult> prequential;
  std::vector<StructureResult> structures;
  std::optional<Milestones> milestones = {};  ///< of the document's first metric, else the loss

  /// The rows that measure its model: "test" where there are any, else "prequential" or
  /// "validation".
  std::string_view evaluated_on() const;
  /// Its scores on them; null where there are none.
  const Scores* evaluated() const;
  /// The scores that settings are chosen by: the same without test rows.
  const Scores* validated() const;
};

/// Over the folds of a cross-validation. Deviations are those of a sample: divided by n - 1.
struct CrossValidationResult {
  Number mean_loss;
  Number std_loss;
  std::vector<MetricValue> mean_metrics;  ///< in the document's order
  std::vector<MetricValue> std_metrics;   ///< likewise
  std::vector<FitResult> fold_results;    ///< at least one
  /// Of a nested validation: for each fold what its inner folds came to.
  std::vector<CrossValidationResult> inner;
  double total_time_seconds = 0;  ///< of training and evaluation, added up over the folds
  /// By name, "loss" or a metric: the folds that its mean leaves out, and why.
  std::map<std::string, std::string> undefined;

  /// The rows that folds are evaluated on: "test" where they have them, else "validation".
  std::string_view evaluated_on() const;
};

/// Over the folds in which a number is defined; undefined where it is in none. Sums are in order of
/// the folds. The deviation is that of the sample.
struct FoldMoments {
  Number mean;
  Number deviation;
  std::size_t undefined = 0;  ///< folds
};
FoldMoments moments_over_folds(const std::vector<Number>& values);

/// Over at least one fold: on the rows that measure each of them.
CrossValidationResult summarize_folds(std::vector<FitResult> folds);

/// As in the files of a run.
nlohmann::json to_json(const FitResult& result);
/// Keys that are not there leave the default, and a Number unknown; others are passed over. Throws
/// StorageError, with `place` and the pointer of a value that is of another type.
FitResult fit_result_from(const nlohmann::json& stored, const std::string& place);

nlohmann::json to_json(const EvaluationResult& result);
nlohmann::json to_json(const ResultTable& table);
nlohmann::json to_json(const ModelInfo& info);
nlohmann::json to_json(const PrequentialResult& result);
nlohmann::json to_json(const StructureResult& result);

}  // namespace treadle
